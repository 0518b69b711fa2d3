"""The picture of the report: cost per index against the size of the dataset."""

from __future__ import annotations

from pathlib import Path

from benchmarks.render.figures import Results


def plot(results: Results, path: Path) -> None:
    """Draw ours and the rivals' cost per index, and write a PNG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    whole: dict[str, list[tuple[int, float]]] = {}
    for row in results.tables["whole permutation"]:
        whole.setdefault(row.name, []).append((row.facts["n"], row.least()))
    for name, points in whole.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=f"{name}, whole permutation")
    for table, label in (("stretch", "a stretch"), ("share", "one rank's share of 64")):
        rows = [
            row
            for row in results.tables[table]
            if row.name.startswith("Shuffle") and not row.name.endswith("there")
        ]
        points = [(int(float(row.name.rpartition(" ")[2])), row.least()) for row in rows]
        name = f"indexplan.Shuffle, {label}"
        axes.plot(*zip(*points, strict=True), marker="s", linestyle="--", label=name)
    axes.set(
        xscale="log", yscale="log", xlabel="samples in the dataset", ylabel="ns per index, minimum"
    )
    ticks = (1, 2, 5, 10, 20, 50)
    axes.set_yticks(ticks, labels=map(str, ticks), minor=False)
    axes.set_yticks([], minor=True)
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize="small", loc="center right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
