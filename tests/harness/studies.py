"""What studies are made of, without measuring: turns and trainings of given seconds and metrics."""


def turn(name: str, ranks: int, seconds: float) -> dict:
    row = {"name": name, "ranks": ranks, "threads": 1, "update": "owners", "wire": "float32", "exchange_bytes": 8}
    times = {f"epoch_seconds_{kind}": seconds for kind in ("median", "low", "high")}
    phases = {f"{phase}_seconds": seconds / 4 for phase in ("aggregate", "dense", "pack", "wait")}
    return row | times | phases | {"sent_bytes_per_rank": 2000, "sent_bytes_per_epoch": 4000, "messages_per_rank": 6.0}


def training(*seeds: list[float]) -> dict:
    curves = [
        [{"epoch": 4 * place, "loss": 1.0, "test_metric": value} for place, value in enumerate(one)] for one in seeds
    ]
    return {"curves": curves, "metric": "accuracy", "peak_rss_bytes": 9e6}
