"""A search for hyper-parameters with Optuna: the graph is cut once, every trial trains on two ranks. Needs optuna.

python search_optuna.py 3
"""

import sys

import optuna

import distgnn as dg

GRAPH = "communities:nodes=2000"  # or anything else that dg.fit takes


def trial_of(trial: optuna.Trial) -> float:
    settings = {
        "model": trial.suggest_categorical("model", ["sage", "gcn"]),
        "lr": trial.suggest_float("lr", 1e-3, 3e-2, log=True),
        "dropout": trial.suggest_float("dropout", 0.0, 0.6),
        "hidden_feats": trial.suggest_categorical("hidden_feats", [32, 64]),
    }
    result = dg.fit(GRAPH, ranks=2, epochs=20, quiet=True, **settings)
    return result.summary["valid_metric"]  # the test split is looked at once, at the end


study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(trial_of, n_trials=int(sys.argv[1]))
best = dg.fit(GRAPH, ranks=2, epochs=40, quiet=True, **study.best_params)
print(f"best of {len(study.trials)} trials: {study.best_params}  test accuracy {best.test_accuracy:.4f}")
