"""Chain: layers one behind the other as one differentiable function, and the schedule of their rows.

Behind `enter`, and up to `leave`, layers (`Layer` in layer.py) are steps of one function, which knows who reads what:

    y = dropout(relu(norm(z)))     z stays up to the step's own backward pass, y up to the next step's forward pass

    rows of a step        live from            up to                                         in memory
    x, y of the step      the step before      the step behind has read them                 their own, or of dead rows
      before it           the same             its backward pass, where they cannot be       the same
                                               made again
    z, with a norm        the step             its backward pass                             their own
    y, without            the step             its backward pass: it says what ReLU and      over z
                                               mask let through
    dy                    the step behind      the step has made dz and dx                   dz, dx over dy

A backward pass makes x again from the z of the step before, piece by piece (`Layer.again`, `PieceRows`). So the memory
of x is free once x was read: a result whose z is kept is written there (`Room`). With remat, z and y of a first layer
are made again from x and A x, which are there anyway. The forward pass writes the schedule down, a `Step` for each
layer. The backward pass reads it from its end; `Chain.table` prints it.

A second backward pass, or one after the result was written to in place, runs the steps anew from what came in. Late
exchanges cannot be repeated: then it is refused.

Torch saves what came in from outside (features, parameters), and refuses it if it was written to. Where somebody else
looks at rows (residual, a head of all layers, hooks, an own model) each layer is a function of its own (`Single`): it
keeps x and z, and writes over no gradient.

Legend: O rows, D columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from distgnn.ops.function import GraphView, operator, own_tensor
from distgnn.ops.rowwise.layer import Call, Given, Layer, Room, Saved, Single, check_exact, detached
from distgnn.ops.rowwise.products import PieceRows


@dataclass(eq=False)
class Slot:
    """One tensor of a chain: `number` among those from outside (-1: a step made it), and what is kept of it."""

    needs_grad: bool
    dtype: torch.dtype
    number: int = -1
    rows: torch.Tensor | None = None
    again: PieceRows | None = None
    grad: torch.Tensor | None = None

    def value(self, given: Sequence[Any]) -> Any:
        """What a backward pass reads. Args: given: what came in from outside."""
        if self.number >= 0:
            return given[self.number]
        return self.rows if self.again is None else self.again

    def add(self, grad: torch.Tensor) -> None:
        """Parts of a gradient in the order in which they come; the first is ours where a step made the rows."""
        if self.number < 0:
            grad = grad.to(self.dtype)
        if self.grad is None:
            self.grad = grad
        else:
            self.grad = torch.add(self.grad, grad, out=self.grad if self.number < 0 else None)


@dataclass(eq=False)
class Step:
    """A line of the schedule. Args: inputs: a slot for each tensor, others as they are; over: the result has the memory
    of dead rows."""

    layer: type[Layer]
    call: Call
    inputs: list[Any]
    out: Slot
    kept: Any = None
    over: bool = False

    def run(self, values: Sequence[Any], room: Room) -> torch.Tensor:
        """The result; notes what is kept. Args: values: of `inputs`."""
        free = room.rows
        out, self.kept = self.layer.run(*values, self.call, room)
        self.over = free is not None and room.rows is not free
        source = values[0] if self.inputs[0].again is None else self.inputs[0].again
        self.out.again = self.layer.again(self.call, source, values, out, self.kept)
        if self.out.again is not None:  # the layer ends here: the next has dead rows of its own
            room.rows = None
        return own_tensor(out)

    def back(self, given: Sequence[Any], is_ours: bool = True) -> None:
        """The step's backward pass, from the gradient in `out` to those of `inputs`.

        Args: given: what came in; is_ours: nobody else has the gradient in `out`.
        """
        out = self.out
        grad, out.rows, out.again, out.grad = out.grad, None, None, None
        if grad is None:
            return
        self.call.graph.buffers.read_ahead()
        inputs = [one.value(given) if isinstance(one, Slot) else one for one in self.inputs]
        needs = [isinstance(one, Slot) and one.needs_grad for one in self.inputs]
        handed = Given(inputs, self.kept, grad, needs, is_ours)
        self.kept = None
        del inputs, grad
        for slot, found in zip(self.inputs, self.layer.backward(self.call, handed), strict=True):
            if found is not None and isinstance(slot, Slot) and slot.needs_grad:
                slot.add(found)


@dataclass(eq=False)
class Rows:
    """Rows on their way through a chain: what layers take and give in place of a tensor. They hold the memory.

    `lends`: the next step that has read them may free them, where they can be made again.
    """

    chain: "Chain"
    slot: Slot
    tensor: Any
    lends: bool = True

    @property
    def requires_grad(self) -> bool:
        return self.slot.needs_grad

    @property
    def shape(self) -> torch.Size:
        return self.tensor.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.slot.dtype

    def __len__(self) -> int:
        return len(self.tensor)

    def dim(self) -> int:
        return len(self.shape)

    def shared(self) -> "Rows":
        """The same rows for a layer that is not the last to read them."""
        return replace(self, lends=False)


@dataclass(eq=False)
class Chain:
    """The steps up to now, and what came in from outside."""

    graph: GraphView
    steps: list[Step] = field(default_factory=list)
    given: list[Any] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)  # of `given`
    room: Room = field(default_factory=Room)
    is_left: bool = False

    def slot_of(self, one: Any) -> Any:
        """That of rows on their way, or of a tensor from outside; else what it is."""
        if isinstance(one, Rows):
            return one.slot
        if not isinstance(one, torch.Tensor):
            return one
        for slot, known in zip(self.slots, self.given, strict=True):
            if known is one:
                return slot
        self.given.append(one)
        self.slots.append(Slot(one.requires_grad and torch.is_grad_enabled(), one.dtype, len(self.slots)))
        return self.slots[-1]

    def run(self, layer: type[Layer], call: Call, inputs: Sequence[Any]) -> Rows:
        """One more step."""
        if self.is_left:
            raise ValueError("these rows have left their chain: take the tensors that `leave` gave")
        slots = [self.slot_of(one) for one in inputs]
        values = [one.tensor if isinstance(one, Rows) else detached(one) for one in inputs]
        records = call.needs_grad and any(isinstance(one, Slot) and one.needs_grad for one in slots)
        out = Slot(records, values[0].dtype)
        step = Step(layer, call, slots, out)
        first: Rows = inputs[0]
        again, made_here = first.slot.again, first.slot.number < 0
        is_last_reader = first.lends and not any(one is first for one in inputs[1:])
        if records and again is not None and is_last_reader:  # made again: their memory is free
            self.room.rows, first.tensor = first.tensor, None
        elif records and again is None and layer.reads_feats and made_here:  # kept
            first.slot.rows = first.tensor
        elif not call.needs_grad and layer.goes_over and made_here:  # of an evaluation
            self.room.rows = first.tensor
        with torch.no_grad():
            result = step.run(values, self.room)
        out.dtype = result.dtype
        if records:
            self.steps.append(step)
        elif call.needs_grad:  # steps behind it see a constant
            out = self.slot_of(result)
        return Rows(self, out, result)

    def table(self) -> str:
        """The schedule, a line for each step."""
        names = {id(step.out): f"y{number}" for number, step in enumerate(self.steps, 1)}
        lines = ["| step | reads | writes | keeps | x in the backward pass |", "|---|---|---|---|---|"]
        for number, step in enumerate(self.steps, 1):
            first: Slot = step.inputs[0]
            saved = None if step.kept is None else step.kept.epilogue
            keeps = [name for name in ("out", "rows", "stats") if getattr(saved, name, None) is not None]
            source = "kept" if first.again is None else "made again"
            name, plan = step.layer.__name__.strip("_").lower(), step.call.plan
            cells = (
                f"{name} {plan.name}" if plan is not None else name,
                names.get(id(first), "feats"),
                f"y{number}" + (" over dead rows" if step.over else ""),
                ", ".join({"out": "y", "rows": "z", "stats": "statistics"}[one] for one in keeps) or "–",
                source if step.layer.reads_feats else "not read",
            )
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)


@operator
def enter(graph: GraphView, feats: Any) -> Any:
    """Rows [O, D] on their way into a chain; rows that are on their way go on."""
    if isinstance(feats, Rows):
        return feats
    chain = Chain(graph)
    return Rows(chain, chain.slot_of(feats), feats)


def leave(*rows: Any, alone: bool = False) -> Any:
    """Rows that came through a chain as tensors, results of one function: one, or a tuple. Tensors go as they are.

    Args: alone: nobody else has their gradients, which may be written over.
    """
    ways = {id(one): one for one in rows if isinstance(one, Rows)}
    made = {key: one.tensor for key, one in ways.items()}
    chains = [one.chain for one in ways.values() if one.requires_grad]
    if chains and chains[0].steps:
        chain, slots = chains[0], [one.slot for one in ways.values()]
        chain.room, token = Room(), _Chain.apply(chain, *chain.given)
        made = dict(zip(ways, _Last.apply(token, chain, slots, alone, [*made.values()]), strict=True))
        chain.given, chain.is_left = [], True
    found = tuple(made.get(id(one), one) for one in rows)
    return found[0] if len(found) == 1 else found


def apply(layer: type[Layer], call: Call, *inputs: Any) -> Any:
    """A layer as the next step of the chain that its first input is on, or as a function of its own."""
    if isinstance(inputs[0], Rows):
        return inputs[0].chain.run(layer, call, inputs)
    return Single.apply(layer, call, *inputs)


def tensor_of(rows: Any) -> Any:
    """The tensor of rows on their way."""
    return rows.tensor if isinstance(rows, Rows) else rows


class _Chain(Saved):
    """All steps but the last. Its result has no rows: it stands for the function in torch's graph."""

    @staticmethod
    def forward(ctx: Any, chain: Chain, *given: Any) -> torch.Tensor:
        ctx.chain = chain
        Saved.save(ctx, given)
        return torch.zeros(())

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        given, chain = Saved.saved(ctx), ctx.chain
        for step in reversed(chain.steps):
            step.back(given)
        found = [slot.grad for slot in chain.slots]
        for slot in chain.slots:
            slot.grad = None
        return None, *found


class _Last(Saved):
    """The steps that end in results. Torch holds a result's gradient while this runs, and not in the steps before."""

    @staticmethod
    def forward(
        ctx: Any, token: torch.Tensor, chain: Chain, outs: list[Slot], alone: bool, results: list[Any]
    ) -> tuple:
        ctx.chain, ctx.outs, ctx.alone, ctx.is_spent = chain, outs, alone, False
        Saved.save(ctx, chain.given)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        given, chain = Saved.saved(ctx), ctx.chain
        spent, ctx.is_spent = ctx.is_spent, True
        if spent or not all(step.kept.is_intact for step in chain.steps):
            check_exact([step.call for step in chain.steps], spent)
            _run_anew(chain, given)
        for slot, grad in zip(ctx.outs, grads, strict=True):
            slot.grad = grad
        for step in reversed(chain.steps):
            if step.out in ctx.outs:
                step.back(given, is_ours=ctx.alone)
        return torch.zeros(()), None, None, None, None


def _run_anew(chain: Chain, given: Sequence[Any]) -> None:
    """All steps once more. Collective: where their exchanges are."""
    made: dict[int, Any] = {}
    for slot in (*chain.slots, *(step.out for step in chain.steps)):
        slot.grad = None  # of a pass that was broken off
    for step in chain.steps:
        values = [made.get(id(one), one.value(given)) if isinstance(one, Slot) else one for one in step.inputs]
        out, slot = step.run(values, Room()), step.out
        slot.rows = out if slot.again is None else None
        made[id(slot)] = out
