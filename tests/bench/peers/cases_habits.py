"""What scripts do around a model: closures, averages of weights, own losses, metrics of other libraries."""

import copy

import torch
import torch.nn.functional as F
from cases import case
from torch import nn
from torch_geometric.nn import MLP, GCNConv
from torch_geometric.utils import degree
from worlds import NUM_CLASSES, WIDTH

HABITS = "habits of scripts"


class Net(nn.Module):
    def __init__(self, norm=None):
        super().__init__()
        self.first, self.second, self.norm = GCNConv(WIDTH, 8), GCNConv(8, NUM_CLASSES), norm or nn.Identity()

    def forward(self, data):
        return self.second(F.relu(self.norm(self.first(data.x, data.edge_index))), data.edge_index)


def net(s, norm=None):
    return s.distribute(Net(norm))


def entropy(s, out, **options):
    return F.cross_entropy(out[s.train_mask], s.y[s.train_mask], **options)


def steps(s, model, loss, number=3, rate=0.1, of=None):
    optimizer, found = torch.optim.SGD(model.parameters(), rate), []
    for _ in range(number):
        optimizer.zero_grad()
        value = loss(model(s.g if of is None else of))
        value.backward()
        optimizer.step()
        found.append(value.item())
    return found


@case(HABITS)
def an_optimiser_with_a_closure(s):
    model = net(s)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)

    def closure():
        optimizer.zero_grad()
        loss = entropy(s, model(s.g))
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(3)]


@case(HABITS)
def gradients_of_several_losses(s):
    model = net(s)
    optimizer, found = torch.optim.Adam(model.parameters(), lr=0.01), []
    for _ in range(3):
        optimizer.zero_grad()
        for factor in (1, 2):
            loss = entropy(s, factor * model(s.g)) / 2
            loss.backward()
            found.append(loss.item())
        optimizer.step()
    return found


@case(HABITS)
def averaged_weights(s):
    model = net(s, nn.BatchNorm1d(8))
    average = torch.optim.swa_utils.AveragedModel(model)
    for _ in range(3):
        steps(s, model, lambda out: entropy(s, out), 1)
        average.update_parameters(model)
    return average.eval()(s.g)


@case(HABITS)
def metrics_of_scikit_learn(s):
    from sklearn.metrics import f1_score, roc_auc_score

    with torch.no_grad():
        scores = net(s)(s.g).softmax(1)
    truth, scores, held_out = s.y.cpu().numpy(), scores.cpu().numpy(), (~s.train_mask).numpy()
    known = held_out & (truth >= 0)
    return [
        roc_auc_score(truth[known], scores[known], multi_class="ovr", labels=range(NUM_CLASSES)),
        f1_score(truth[known], scores[known].argmax(1), average="macro"),
    ]


@case(HABITS)
def a_scheduler_that_looks_at_the_loss(s):
    model = net(s)
    optimizer, found = torch.optim.AdamW(model.parameters(), lr=0.1), []
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    for _ in range(4):
        optimizer.zero_grad()
        loss = entropy(s, model(s.g))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step()
        scheduler.step(loss)
        found += [loss.item(), float(norm), optimizer.param_groups[0]["lr"]]
    return found


@case(HABITS)
def weights_of_classes(s):
    counts = torch.bincount(s.y[s.train_mask], minlength=NUM_CLASSES).double()
    return steps(s, net(s), lambda out: entropy(s, out, weight=counts.sum() / counts))


@case(HABITS)
def smoothed_labels(s):
    return steps(s, net(s), lambda out: entropy(s, out, label_smoothing=0.1))


@case(HABITS)
def a_focal_loss(s):
    def loss(out):
        scores = F.log_softmax(out, 1)[s.train_mask].gather(1, s.y[s.train_mask].view(-1, 1)).squeeze(1)
        return -((1 - scores.exp()) ** 2 * scores).mean()

    return steps(s, net(s), loss)


@case(HABITS)
def smoothness_over_arcs(s):
    left, right = s.g.edge_index
    return steps(s, net(s), lambda out: entropy(s, out) + 0.1 * (out[left] - out[right]).pow(2).sum(-1).mean())


@case(HABITS)
def degrees_as_features(s):
    degrees = degree(s.g.edge_index[1], s.num_nodes)
    return {"largest": degrees.max(), "columns": torch.log1p(degrees).view(-1, 1) * s.g.x}


@case(HABITS)
def a_confusion_matrix(s):
    guess = net(s)(s.g).argmax(1)
    cells = [[((s.y == row) & (guess == column)).sum() for column in range(NUM_CLASSES)] for row in range(NUM_CLASSES)]
    return {"cells": cells, "at once": torch.bincount(s.y * NUM_CLASSES + guess, minlength=NUM_CLASSES**2)}


@case(HABITS)
def the_best_weights(s):
    model, best = net(s, nn.LayerNorm(8)), (float("inf"), {})
    for _ in range(4):
        steps(s, model, lambda out: entropy(s, out), 1, 0.3)
        with torch.no_grad():
            value = F.cross_entropy(model(s.g)[~s.train_mask], s.y[~s.train_mask]).item()
        if value < best[0]:
            best = value, copy.deepcopy(model.state_dict())
    model.load_state_dict(best[1])
    return [best[0], entropy(s, model(s.g)).item()]


@case(HABITS)
def a_split_by_randperm(s):
    ids = torch.randperm(s.num_nodes, generator=torch.Generator().manual_seed(3))[:20]
    return steps(s, net(s), lambda out: F.nll_loss(out.log_softmax(-1)[ids], s.y[ids]))


@case(HABITS)
def a_loader_of_training_ids(s):
    model, found = net(s), []
    for ids in torch.utils.data.DataLoader(s.train_mask.nonzero().flatten(), batch_size=12):
        found += steps(s, model, lambda out, ids=ids: F.cross_entropy(out[ids], s.y[ids]), 1)
    return found


@case(HABITS)
def guessed_labels(s):
    model = net(s)
    with torch.no_grad():
        sure, guess = model(s.g).softmax(1).max(1)
    labels, used = torch.where(s.train_mask, s.y, guess), s.train_mask | (sure > 0.3)
    return {"losses": steps(s, model, lambda out: F.cross_entropy(out[used], labels[used])), "used": used.sum()}


@case(HABITS)
def a_student_of_another_model(s):
    student = s.distribute(MLP([WIDTH, 8, NUM_CLASSES], norm=None))
    with torch.no_grad():
        target = net(s)(s.g).log_softmax(1)

    def loss(rows):
        return F.kl_div(rows.log_softmax(1), target, reduction="batchmean", log_target=True)

    return steps(s, student, loss, of=s.g.x)


@case(HABITS)
def whitened_features(s):
    rows = s.g.x - s.g.x.mean(0)
    vectors, sizes, _ = torch.linalg.svd(rows.t() @ rows / (s.num_nodes - 1))
    return {"sizes": sizes, "most": (rows @ vectors).abs().max()}


@case(HABITS)
def distances_to_means_of_classes(s):
    rows = net(s)(s.g)
    means = torch.stack([rows[s.train_mask & (s.y == one)].mean(0) for one in range(NUM_CLASSES)])
    return F.cross_entropy(-torch.cdist(rows, means)[s.train_mask], s.y[s.train_mask])


@case(HABITS)
def sums_by_class(s):
    return torch.zeros(NUM_CLASSES, WIDTH).index_add_(0, s.y.clamp(min=0), s.g.x)


@case(HABITS)
def through_numpy_and_back(s):
    return (torch.from_numpy(s.g.x.numpy() * 2) - s.g.x).abs().sum()
