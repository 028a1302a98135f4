"""Numbers made of rows: statistics, norms on some of the rows, products of rows, and what needs an order of them."""

import torch
import torch.nn.functional as F
from cases import case, expressions
from torch import nn
from worlds import NUM_CLASSES, WIDTH

STATISTICS = "statistics of rows"
SOME = "norms on some rows"
PRODUCTS = "rows x rows"
ORDER = "order of rows"
LOSSES = "losses"
COLUMNS = "elementwise and columns"

expressions(
    STATISTICS,
    {
        "mean of rows": lambda s, x: x.mean(0),
        "mean of all numbers": lambda s, x: x.mean(),
        "mean keeps dim": lambda s, x: x - x.mean(dim=0, keepdim=True),
        "mean of columns": lambda s, x: x.mean(1),
        "mean over both dims": lambda s, x: x.mean((0, 1)),
        "mean over a negative dim": lambda s, x: x.mean(-2),
        "sum of rows": lambda s, x: x.sum(0),
        "sum of all numbers": lambda s, x: torch.sum(x),
        "std of all numbers": lambda s, x: x.std(),
        "std of rows": lambda s, x: (x - x.mean(0)) / (x.std(0) + 1e-5),
        "std without correction": lambda s, x: x.std(0, unbiased=False),
        "var of rows": lambda s, x: x.var(0),
        "var with correction": lambda s, x: torch.var(x, dim=0, correction=2),
        "var and mean at once": lambda s, x: torch.var_mean(x, 0),
        "std and mean at once": lambda s, x: torch.std_mean(x, dim=0, keepdim=True),
        "norm of all numbers": lambda s, x: x.norm(),
        "norm of columns over rows": lambda s, x: x.norm(dim=0),
        "norm of rows": lambda s, x: x / x.norm(dim=1, keepdim=True),
        "first norm over rows": lambda s, x: x.norm(p=1, dim=0),
        "largest norm over rows": lambda s, x: torch.linalg.vector_norm(x, float("inf"), dim=0),
        "vector norm": lambda s, x: torch.linalg.vector_norm(x, dim=0),
        "largest number": lambda s, x: x.max(),
        "largest of rows": lambda s, x: x.max(0).values,
        "smallest of rows": lambda s, x: x.amin(0),
        "largest and smallest": lambda s, x: torch.aminmax(x, dim=0),
        "scaled to 0 and 1": lambda s, x: (x - x.amin(0)) / (x.amax(0) - x.amin(0)),
        "normalize over rows": lambda s, x: F.normalize(x, dim=0),
        "normalize rows": lambda s, x: F.normalize(x, dim=1),
        "softmax over rows": lambda s, x: x.softmax(0),
        "log softmax over rows": lambda s, x: F.log_softmax(x, dim=0),
        "softmax of columns": lambda s, x: F.softmax(x, dim=-1),
        "logsumexp over rows": lambda s, x: torch.logsumexp(x, 0),
        "logsumexp of columns": lambda s, x: torch.logsumexp(x, 1),
        "batch norm": lambda s, x: F.batch_norm(x, None, None, training=True),
        "own layer norm over all": lambda s, x: (x - x.mean()) / torch.sqrt(x.var(unbiased=False) + 1e-5),
        "layer norm of rows": lambda s, x: F.layer_norm(x, (x.shape[1],)),
        "pair norm by hand": lambda s, x: (x - x.mean(0)) / (x - x.mean(0)).pow(2).sum(1).mean().sqrt(),
        "summary of DGI": lambda s, x: torch.sigmoid(x.mean(dim=0)),
        "weighted pooling": lambda s, x: (x[:, :1].softmax(0) * x).sum(0),
        "attention pooling as a product": lambda s, x: x[:, :1].softmax(0).t() @ x,
        "kl of VGAE": lambda s, x: -0.5 * torch.mean(torch.sum(1 + x - x.tanh() ** 2 - x.exp(), dim=1)),
        "mean of a mask": lambda s, x: x * s.train_mask.double().mean(),
        "count of a mask": lambda s, x: x / s.train_mask.sum(),
        "masked mean": lambda s, x: x[s.train_mask].mean(0),
        "masked std": lambda s, x: x[s.train_mask].std(0),
        "mean weighted by a mask": lambda s, x: (x * s.train_mask.unsqueeze(1)).sum(0) / s.train_mask.sum(),
        "all and any": lambda s, x: (x + (x.detach() > -99).all() + (x.detach() > 2).any(), (x.detach() > 0).any(0)),
        "number of nodes by shape": lambda s, x: x / x.shape[0],
        "number of nodes by size": lambda s, x: x / x.size(0) + len(x),
        "number of elements": lambda s, x: x / x.numel(),
        "nansum and nanmean": lambda s, x: (torch.nansum(x, 0), torch.nanmean(x, 0)),
        "product over rows": lambda s, x: x.tanh().add(1.5).prod(0),
        "count nonzero": lambda s, x: x * torch.count_nonzero(x.detach() > 0),
        "cumulative sum of columns": lambda s, x: x.cumsum(1),
        "covariance": lambda s, x: ((x - x.mean(0)).t() @ (x - x.mean(0))) / (x.shape[0] - 1),
        "largest index of columns": lambda s, x: x * x.argmax(1, keepdim=True),
        "classes counted": lambda s, x: x * torch.bincount(s.y, minlength=NUM_CLASSES).double().mean(),
        "one-hot class sizes": lambda s, x: x[:, :NUM_CLASSES] * F.one_hot(s.y, NUM_CLASSES).double().sum(0),
        "class means": lambda s, x: F.one_hot(s.y, NUM_CLASSES).double().t() @ x,
        "class means by index_add": lambda s, x: torch.zeros(NUM_CLASSES, WIDTH).index_add(0, s.y, x),
        "class means by scatter": lambda s, x: torch.zeros(NUM_CLASSES, WIDTH).scatter_add(
            0, s.y.unsqueeze(1).expand(-1, WIDTH), x
        ),
        "means of a loop over classes": lambda s, x: torch.stack([x[s.y == one].mean(0) for one in range(NUM_CLASSES)]),
        "one-hot of largest label": lambda s, x: x * (int(s.y.max()) + 1),
        "einsum over rows": lambda s, x: torch.einsum("nd,ne->de", x, x),
        "einsum of columns": lambda s, x: torch.einsum("nd,de->ne", x, torch.ones(WIDTH, 3)),
        "linear attention": lambda s, x: x.sigmoid() @ (x.sigmoid().t() @ x),
        "kernel of SGFormer": lambda s, x: torch.einsum("nd,dm->nm", x / x.norm(), torch.einsum("ld,lm->dm", x, x)),
    },
)

expressions(
    SOME,
    {
        "batch norm of the masked": lambda s, x: F.batch_norm(x[s.train_mask], None, None, training=True),
        "batch norm of the others": lambda s, x: F.batch_norm(x[~s.train_mask], None, None, training=True),
        "batch norm of the ids": lambda s, x: F.batch_norm(x[s.ids.train], None, None, training=True),
        "standardised by the masked": lambda s, x: (x - x[s.train_mask].mean(0)) / x[s.train_mask].std(0),
        "masked twice": lambda s, x: F.batch_norm(x[s.train_mask][s.y[s.train_mask] == 1], None, None, training=True),
        "masked of one class": lambda s, x: x[(s.y == 2) & s.train_mask].mean(0),
        "norm of source rows": lambda s, x: F.batch_norm(x[s.ids.pos[0]], None, None, training=True),
        "mean of nobody": lambda s, x: x[s.train_mask & ~s.train_mask].sum(0),
        "masked select": lambda s, x: torch.masked_select(x, s.train_mask.unsqueeze(1)).mean(),
        "where": lambda s, x: torch.where(s.train_mask.unsqueeze(1), x, x.mean(0)),
        "filled by a mask": lambda s, x: x.masked_fill(s.train_mask.unsqueeze(1), 0.0).mean(0),
    },
)


class Norms(nn.Module):
    """A perceptron with a norm, on rows as they come."""

    def __init__(self, norm: nn.Module):
        super().__init__()
        self.lin, self.norm, self.last = nn.Linear(WIDTH, 6), norm, nn.Linear(6, 3)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.last(self.norm(self.lin(rows)).relu())


NORMS = {
    "BatchNorm1d": lambda: nn.BatchNorm1d(6),
    "BatchNorm1d no affine": lambda: nn.BatchNorm1d(6, affine=False),
    "BatchNorm1d no statistics": lambda: nn.BatchNorm1d(6, track_running_stats=False),
    "BatchNorm1d cumulative": lambda: nn.BatchNorm1d(6, momentum=None),
    "LayerNorm": lambda: nn.LayerNorm(6),
    "GroupNorm": lambda: nn.GroupNorm(2, 6),
    "RMSNorm": lambda: nn.RMSNorm(6),
    "LocalResponseNorm": lambda: nn.Sequential(nn.Unflatten(1, (6, 1)), nn.LocalResponseNorm(2), nn.Flatten()),
    "LazyBatchNorm1d": lambda: nn.LazyBatchNorm1d(),
    "spectral norm": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(6, 6)),
    "weight norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(6, 6)),
}
ROWS = {
    "all rows": lambda s: lambda rows: rows,
    "masked rows": lambda s: lambda rows: rows[s.train_mask],
    "rows by ids": lambda s: lambda rows: rows[s.ids.train],
}
for norm_name, make_norm in NORMS.items():
    for rows_name, choose in ROWS.items():

        @case(SOME, f"{norm_name} on {rows_name}")
        def norm_on_rows(s, make_norm=make_norm, choose=choose):
            model, take = Norms(make_norm()), choose(s)
            model(torch.zeros(2, WIDTH))  # a lazy norm gets its width
            rows = s.x
            found = s.train(model, lambda model: model(take(rows)).sin().mean())
            return found | {"gradient": rows.grad, "predicted": model.eval()(rows)}


expressions(
    PRODUCTS,
    {
        "gram matrix": lambda s, x: x @ x.t(),
        "sigmoid of the gram matrix": lambda s, x: torch.sigmoid(torch.mm(x, x.t())),
        "matmul with a transposed": lambda s, x: torch.matmul(x, x.transpose(0, 1)).mean(),
        "cosine similarities": lambda s, x: F.normalize(x) @ F.normalize(x).T,
        "contrast of GRACE": lambda s, x: -torch.log((x @ x.t()).exp().diag() / (x @ x.t()).exp().sum(1)).mean(),
        "decoder of VGAE": lambda s, x: F.binary_cross_entropy_with_logits(x @ x.t(), torch.zeros(len(x), len(x))),
        "distances": lambda s, x: torch.cdist(x, x),
        "einsum of pairs": lambda s, x: torch.einsum("nd,md->nm", x, x),
        "addmm": lambda s, x: torch.addmm(torch.zeros(1), x, x.t()),
        "masked by all": lambda s, x: x[s.train_mask] @ x.t(),
        "attention between vertices": lambda s, x: F.scaled_dot_product_attention(x[None], x[None], x[None])[0],
        "broadcast pairs": lambda s, x: (x[:, None] - x[None]).norm(dim=-1),
        "outer of a column": lambda s, x: torch.outer(x[:, 0], x[:, 0]),
        "kronecker": lambda s, x: torch.kron(x[:, :1], x[:, 1:2]),
        "transposed product": lambda s, x: x.t() @ x,
        "transposed product of two": lambda s, x: torch.mm(x[:, :3].t(), x.tanh()),
        "T product": lambda s, x: x.T.matmul(x) / x.shape[0],
        "barlow twins": lambda s, x: (x - x.mean(0)).T @ (x.tanh() - x.tanh().mean(0)) / len(x) - torch.eye(WIDTH),
        "dot of two columns": lambda s, x: torch.dot(x[:, 0], x[:, 1]),
        "column times all": lambda s, x: x[:, 0] @ x,
        "singular values": lambda s, x: torch.linalg.svdvals(x),
        "least squares": lambda s, x: torch.linalg.lstsq(x, x[:, :1]).solution,
        "row of one vertex against all": lambda s, x: x @ x[0],
    },
)

expressions(
    ORDER,
    {
        "sort over rows": lambda s, x: x.sort(0).values,
        "sort of columns": lambda s, x: x.sort(1).values,
        "argsort": lambda s, x: x[x[:, 0].argsort()],
        "topk over rows": lambda s, x: x.topk(5, 0).values,
        "topk of columns": lambda s, x: x.topk(2, 1).values,
        "median of all": lambda s, x: x.median(),
        "median over rows": lambda s, x: x.median(0).values,
        "quantile": lambda s, x: x.quantile(0.3, dim=0),
        "kthvalue": lambda s, x: x.kthvalue(7, 0).values,
        "mode": lambda s, x: x * s.y.mode().values,
        "unique": lambda s, x: x * torch.unique(s.y).sum(),
        "cumsum over rows": lambda s, x: x.cumsum(0),
        "flip": lambda s, x: x.flip(0),
        "roll": lambda s, x: x.roll(1, 0),
        "reshape across rows": lambda s, x: x.reshape(-1),
        "view heads": lambda s, x: x.view(-1, 2, WIDTH // 2).mean(1),
        "view by the number of nodes": lambda s, x: x.view(s.num_nodes, 2, -1).sum(1),
        "flatten heads": lambda s, x: x.view(len(x), 4, 2).flatten(1),
        "flatten all": lambda s, x: x.flatten(),
        "transpose": lambda s, x: x.t(),
        "permute": lambda s, x: x.view(-1, 2, 4).permute(0, 2, 1).reshape(len(x), -1),
        "permute rows away": lambda s, x: x.view(-1, 2, 4).permute(1, 0, 2).mean(0),
        "first rows": lambda s, x: x[:10],
        "last row": lambda s, x: x[-1],
        "every other row": lambda s, x: x[::2],
        "one row": lambda s, x: x[7],
        "one number": lambda s, x: x[7, 2],
        "narrow": lambda s, x: x.narrow(0, 2, 9),
        "split": lambda s, x: x.split(20),
        "chunk of columns": lambda s, x: x.chunk(2, dim=1),
        "cat under": lambda s, x: torch.cat([x, x]),
        "cat beside": lambda s, x: torch.cat([x, x * 2, torch.ones(s.num_nodes, 1)], 1),
        "stack": lambda s, x: torch.stack([x, x.tanh()], 1).mean(1),
        "stack in front": lambda s, x: torch.stack([x, x.tanh()]).sum(0),
        "stack in front and max": lambda s, x: torch.stack([x, x.tanh()], dim=0).max(0).values,
        "stack behind": lambda s, x: torch.stack([x, x.tanh()], -1).softmax(-1).sum(-1),
        "unbind": lambda s, x: x.unbind(1)[2],
        "unbind rows": lambda s, x: x.unbind(0)[2],
        "iterate": lambda s, x: torch.stack([row.sum() for row in x]),
        "diff": lambda s, x: x.diff(dim=0),
        "nonzero ids": lambda s, x: x[s.train_mask.nonzero().view(-1)],
        "nonzero tuple": lambda s, x: x[s.train_mask.nonzero(as_tuple=True)[0]],
        "where ids": lambda s, x: x[torch.where(s.y == 1)[0]].sum(0),
        "argmax over rows": lambda s, x: x[x.argmax(0)],
        "isin": lambda s, x: x[torch.isin(s.y, torch.tensor([1, 2]))],
        "searchsorted": lambda s, x: torch.searchsorted(x.detach().sort(0).values, x.detach()).double() * x,
        "histc": lambda s, x: torch.histc(x.detach(), 5) * x.sum(),
        "repeat": lambda s, x: x.repeat(1, 2),
        "repeat rows": lambda s, x: x.repeat(2, 1),
        "repeat interleave": lambda s, x: x.repeat_interleave(2, 0),
        "expand": lambda s, x: x[:, :1].expand(-1, 3) * 2,
        "squeeze": lambda s, x: x[:, :1].squeeze(),
        "squeeze last": lambda s, x: x[:, :1].squeeze(-1).sigmoid(),
        "unsqueeze in front": lambda s, x: x.unsqueeze(0),
        "new zeros": lambda s, x: x.new_zeros(x.size(0), 2) + x[:, :2],
        "zeros like": lambda s, x: torch.zeros_like(x) + x,
        "arange of rows": lambda s, x: x * torch.arange(s.num_nodes).unsqueeze(1),
        "tensor of N rows": lambda s, x: x + torch.linspace(0, 1, s.num_nodes * WIDTH).view(s.num_nodes, WIDTH),
        "list of numbers": lambda s, x: sum(x.detach()[:, 0].tolist()) * x.mean(),
        "numpy": lambda s, x: x * float(x.detach().numpy()[3, 1]),
        "one item": lambda s, x: x * x.detach()[5, 1].item(),
    },
)

expressions(
    LOSSES,
    {
        "cross entropy of the masked": lambda s, x: F.cross_entropy(x[s.train_mask], s.y[s.train_mask]),
        "cross entropy of ids": lambda s, x: F.cross_entropy(x[s.ids.train], s.y[s.ids.train]),
        "cross entropy sum": lambda s, x: F.cross_entropy(x, s.y, reduction="sum"),
        "cross entropy none": lambda s, x: F.cross_entropy(x, s.y, reduction="none"),
        "cross entropy weighted": lambda s, x: F.cross_entropy(x, s.y, weight=torch.linspace(1, 2, WIDTH)),
        "cross entropy ignores": lambda s, x: F.cross_entropy(x, s.y.masked_fill(~s.train_mask, -100)),
        "cross entropy smoothed": lambda s, x: F.cross_entropy(x, s.y, label_smoothing=0.2),
        "cross entropy module": lambda s, x: nn.CrossEntropyLoss()(x[s.train_mask], s.y[s.train_mask]),
        "cross entropy of shares": lambda s, x: F.cross_entropy(x, F.one_hot(s.y, WIDTH).double()),
        "nll": lambda s, x: F.nll_loss(x.log_softmax(-1)[s.train_mask], s.y[s.train_mask]),
        "nll weighted": lambda s, x: F.nll_loss(x.log_softmax(-1), s.y, weight=torch.linspace(1, 2, WIDTH)),
        "binary cross entropy": lambda s, x: F.binary_cross_entropy(x.sigmoid()[:, 0], s.train_mask.double()),
        "binary cross entropy with logits": lambda s, x: F.binary_cross_entropy_with_logits(x, (x > 0).double()),
        "binary with a positive weight": lambda s, x: F.binary_cross_entropy_with_logits(
            x[:, 0], (s.y == 1).double(), pos_weight=torch.tensor(3.0)
        ),
        "mse": lambda s, x: F.mse_loss(x, x.detach().roll(1, 1)),
        "mse of the masked": lambda s, x: F.mse_loss(x[s.train_mask][:, 0], s.y[s.train_mask].double()),
        "l1": lambda s, x: F.l1_loss(x, torch.zeros_like(x)),
        "smooth l1": lambda s, x: F.smooth_l1_loss(x, x.detach() * 0.5),
        "huber": lambda s, x: F.huber_loss(x, x.detach() * 0.5),
        "kl batchmean": lambda s, x: F.kl_div(
            x.log_softmax(1), x.detach().roll(1, 1).softmax(1), reduction="batchmean"
        ),
        "kl mean": lambda s, x: F.kl_div(x.log_softmax(1), x.detach().roll(1, 1).softmax(1)),
        "cosine embedding": lambda s, x: F.cosine_embedding_loss(x, x.tanh(), torch.ones(s.num_nodes)),
        "cosine similarity": lambda s, x: 1 - F.cosine_similarity(x, x.tanh(), dim=-1).pow(2).mean(),
        "margin ranking": lambda s, x: F.margin_ranking_loss(x[:, 0], x[:, 1], torch.ones(s.num_nodes), margin=0.3),
        "triplet": lambda s, x: F.triplet_margin_loss(x, x.tanh(), x.detach().roll(1, 1)),
        "multi margin": lambda s, x: F.multi_margin_loss(x, s.y),
        "multilabel soft margin": lambda s, x: F.multilabel_soft_margin_loss(x, (x > 0).double()),
        "soft margin": lambda s, x: F.soft_margin_loss(x, torch.sign(x.detach())),
        "hinge embedding": lambda s, x: F.hinge_embedding_loss(x, torch.sign(x.detach())),
        "poisson": lambda s, x: F.poisson_nll_loss(x, x.detach().abs()),
        "gaussian": lambda s, x: F.gaussian_nll_loss(x, x.detach() * 0.5, torch.ones_like(x)),
        "gather by hand": lambda s, x: -x.log_softmax(1).gather(1, s.y.unsqueeze(1)).mean(),
        "picked by hand": lambda s, x: -x.log_softmax(1)[torch.arange(s.num_nodes), s.y].mean(),
        "focal by hand": lambda s, x: (lambda ce: ((1 - (-ce).exp()) ** 2 * ce).mean())(
            F.cross_entropy(x[s.train_mask], s.y[s.train_mask], reduction="none")
        ),
        "two losses": lambda s, x: F.cross_entropy(x[s.train_mask], s.y[s.train_mask]) + 0.1 * x.pow(2).mean(),
        "truncated loss of OGB": lambda s, x: torch.log(
            0.5 + F.cross_entropy(x[s.ids.train], s.y[s.ids.train], reduction="none")
        ).mean(),
        "log of pairs": lambda s, x: -torch.log((x[s.ids.pos[0]] * x[s.ids.pos[1]]).sum(-1).sigmoid() + 1e-15).mean(),
        "sum divided by a count": lambda s, x: (
            F.cross_entropy(x[s.train_mask], s.y[s.train_mask], reduction="sum") / int(s.train_mask.sum())
        ),
        "accuracy": lambda s, x: (x.argmax(1) == s.y)[s.train_mask].sum() / s.train_mask.sum() + x.mean(),
        "accuracy by float": lambda s, x: (x.argmax(-1)[s.train_mask] == s.y[s.train_mask]).double().mean() * x.mean(),
        "accuracy by item": lambda s, x: int((x.argmax(1) == s.y).sum()) / s.num_nodes * x.mean(),
        "accuracy of ids": lambda s, x: x.mean() * int(x.argmax(1)[s.ids.test].eq(s.y[s.ids.test]).sum()),
        "predicted classes": lambda s, x: (x.max(1)[1], x.mean()),
    },
)

expressions(
    COLUMNS,
    {
        "activations": lambda s, x: [f(x) for f in (F.relu, F.elu, F.gelu, F.silu, F.leaky_relu, F.selu, F.softplus)],
        "glu": lambda s, x: F.glu(x),
        "clamp": lambda s, x: x.clamp(-0.5, 0.5),
        "powers": lambda s, x: x.abs().pow(0.5) + x**2,
        "columns taken": lambda s, x: x[:, 2:5],
        "columns by ids": lambda s, x: x[:, [0, 3]],
        "column set": lambda s, x: x.index_fill(1, torch.tensor([2]), 0.0),
        "linear": lambda s, x: F.linear(x, torch.linspace(-1, 1, 3 * WIDTH).view(3, WIDTH), torch.ones(3)),
        "bilinear": lambda s, x: F.bilinear(x, x.tanh(), torch.linspace(-1, 1, 2 * WIDTH**2).view(2, WIDTH, WIDTH)),
        "product per head": lambda s, x: torch.einsum("nhd,hd->nh", x.view(-1, 2, 4), torch.ones(2, 4)),
        "batched product": lambda s, x: torch.bmm(x.view(-1, 1, WIDTH), x.view(-1, WIDTH, 1)).squeeze(2),
        "conv over columns": lambda s, x: F.conv1d(x.unsqueeze(1), torch.ones(2, 1, 3)).flatten(1),
        "pad columns": lambda s, x: F.pad(x, (1, 2)),
        "pad rows": lambda s, x: F.pad(x, (0, 0, 1, 2)),
        "lerp": lambda s, x: torch.lerp(x, x.tanh(), 0.3),
        "addcmul": lambda s, x: torch.addcmul(x, x, x.tanh(), value=0.5),
        "where with numbers": lambda s, x: torch.where(x > 0, x, 0.1 * x),
        "nan to num": lambda s, x: torch.nan_to_num(x / (x.detach() > 0)),
        "gru cell": lambda s, x: torch.gru_cell(
            x, x[:, :2], torch.ones(6, WIDTH) / 9, torch.ones(6, 2), torch.zeros(6), torch.zeros(6)
        ),
        "to float and back": lambda s, x: x.float().double(),
        "half scalar types": lambda s, x: x * torch.tensor(2) + 1,
        "out of place copies": lambda s, x: x.clone() + x.contiguous() + x.detach(),
        "one hot": lambda s, x: x[:, :NUM_CLASSES] * F.one_hot(s.y, NUM_CLASSES),
        "embedding by labels": lambda s, x: (
            F.embedding(s.y, torch.linspace(0, 1, NUM_CLASSES * 3).view(-1, 3)) + x[:, :3]
        ),
        "table of classes": lambda s, x: torch.linspace(0, 1, NUM_CLASSES * 3).view(-1, 3)[s.y] + x[:, :3],
        "labels as input": lambda s, x: torch.cat([x, F.one_hot(s.y, NUM_CLASSES) * s.train_mask.unsqueeze(1)], dim=-1),
        "unflatten": lambda s, x: x.unflatten(1, (2, 4)).sum(1),
        "eye": lambda s, x: x + torch.eye(s.num_nodes)[:, :WIDTH],
    },
)
