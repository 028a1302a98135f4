"""The plateau schedule over several plateaus."""

from distgnn.config import TrainConfig
from distgnn.train.lr_schedule import LearningRate


def test_each_halving_waits_for_a_plateau_of_its_own():
    plateau = LearningRate(TrainConfig(lr=1.0, lr_schedule="plateau"))
    rates = [plateau.after(epoch, loss) for epoch, loss in enumerate([2.0, 1.0] + [1.0] * 22)]
    assert rates == [1.0] * 12 + [0.5] * 11 + [0.25]
