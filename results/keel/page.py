"""Write docs/evidence/keel.md and its picture from the published rows; `--check` only compares.

python results/keel/page.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from analysis import (
    CLUSTERS,
    DEFAULT,
    DEFAULT_SMOOTH,
    ERM,
    MORE_DECAY,
    SMOOTH,
    Effect,
    Study,
    matched,
    mixup,
    read,
)
from choice import advice, clean_errors, clean_losses, compared
from grid import BATCH, DECAY, MOST_ROWS, RATE, STEPS, TABLES, rows_of
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from verdicts import change, facts, filled, verdict, without_heaviest

from kmixup.lab.formatting import signed
from kmixup.lab.plotting import BLACK, BLUE, ORANGE, styled
from kmixup.lab.report.stats import holm, interval, p_text, rank

HERE = Path(__file__).parent
TEMPLATE = HERE / "page.txt"
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "docs"))
from evidence import themed  # noqa: E402

SPLITS, ENOUGH = 10, 5
ARMS = {
    ERM: "ERM",
    SMOOTH: "ERM, label smoothing 0.1",
    MORE_DECAY: "ERM, 10 × weight decay",
    mixup(0.2): "mixup, alpha = 0.2",
    DEFAULT: "**k = 16, alpha = 0.2 (default)**",
    DEFAULT_SMOOTH: "default, label smoothing 0.1",
    mixup(1): "mixup, alpha = 1",
    matched(1): "k = 16, alpha = 1",
}
OTHERS = {
    "noise": ("20 % random labels", "A fifth of the training labels is drawn at random."),
    "tenth": ("A tenth of the rows", "Tables whose tenth has fewer than 48 rows are left out."),
    "long": ("Three times the steps", "Mixed samples take longer to fit than others."),
}
FOREST = {
    "default against ERM": (DEFAULT, ERM),
    "default against\nmixup at alpha = 0.2": (DEFAULT, mixup(0.2)),
}


def per_cent(value: float) -> str:
    return signed(100 * float(np.expm1(value)), 1)


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def enough(study: Study, least: int = ENOUGH) -> bool:
    """Return whether all tables have at least so many splits; a verdict takes five."""
    splits = study.n.groupby("table").size()
    tables = sum(rows_of(name, study.regime) > 0 for name in TABLES)
    return len(splits) == tables and bool(splits.min() >= least)


def family(effects: Sequence[Effect], *, judged: bool) -> str:
    """Return a table of comparisons that are corrected together."""
    corrected = holm([effect.pooled.p for effect in effects])
    body = []
    for effect, p in zip(effects, corrected, strict=True):
        low, high = effect.pooled.prediction or (np.nan, np.nan)
        body.append(
            [
                effect.name,
                change(effect),
                p_text(p),
                verdict(effect, p) if judged else "none yet",
                f"[{per_cent(low)}, {per_cent(high)}]" if effect.pooled.prediction else "",
                f"{effect.better} / {effect.worse} of {len(effect.tables)}",
                without_heaviest(effect),
            ]
        )
    tables = "tables, lower / higher"
    head = (
        "",
        "change, 95 % interval",
        "p (Holm)",
        "verdict",
        "another table",
        tables,
        "without the heaviest",
    )
    return table(head, body)


def arms(study: Study) -> str:
    """Return every arm's scores relative to ERM's, and its calibration error in per cent."""
    body = []
    relative = {
        "error": (study.whole, "error"),
        "log-loss": (study.whole, "log-loss"),
        "log-loss, scaled": (study.part, "scaled nll"),
        "Brier score": (study.whole, "brier"),
        "Brier score, scaled": (study.part, "scaled brier"),
    }
    calibration = [study.wide(study.whole, "ece"), study.wide(study.part, "scaled ece")]
    for arm, name in ARMS.items():
        cells = [name]
        for score, (rows, column) in relative.items():
            if arm == ERM:
                cells.append("")
                continue
            wide = study.wide(rows, column)
            effect = study.compare("", wide[arm], wide[ERM], errors=score == "error")
            some = len(effect.tables) < len(rows.table.unique())
            cells.append("being trained" if some else change(effect))
        means = [100 * wide[arm].groupby("table").mean().mean(skipna=False) for wide in calibration]
        body.append([*cells, *("" if np.isnan(mean) else f"{mean:.1f}" for mean in means)])
    head = ("", *relative, "calibration error, %", "scaled, %")
    return table(head, body)


def alphas(study: Study) -> str:
    """Return k = 16 against mixup at every alpha, and both against ERM."""
    body = []
    for effect in study.by_alpha():
        alpha = float(effect.name.rpartition(" ")[2])
        against = [study.arms("", arm, ERM) for arm in (mixup(alpha), matched(alpha))]
        texts = [change(effect), *map(change, against)]
        body.append([f"{alpha:g}", *texts, f"{effect.better} / {effect.worse}"])
    head = ("alpha", "k = 16 − mixup", "mixup − ERM", "k = 16 − ERM", "lower / higher than mixup")
    return table(head, body)


def splits_of(study: Study) -> str:
    splits = study.n.groupby("table").size()
    least, most = splits.min(), splits.max()
    return f"{least} to {most}" if least < most else f"{least}"


def regime(study: Study) -> str:
    """Return the section of a regime other than clean labels and all rows."""
    title, about = OTHERS[study.regime]
    tables = study.n.index.get_level_values(0).nunique()
    effects = [*study.shared(), study.best_against_erm()]
    return f"""## {title}

{about} {tables} tables, {splits_of(study)} splits each; Holm over five:

{family(effects, judged=enough(study))}

{alphas(study)}
"""


def other_regimes(rows: pd.DataFrame) -> str:
    studies = [Study(rows, name) for name in OTHERS]
    return "\n".join(regime(study) for study in studies if enough(study, least=2))


def setting(study: Study) -> str:
    """Return the regret of every setting, in error and in log-loss."""
    families = {"error": (clean_errors(study), 0.5), "log-loss": (clean_losses(study), 0.0)}
    found = {name: compared(*family) for name, family in families.items()}
    names = {arm: name.replace("*", "") for arm, name in ARMS.items()}
    body = []
    for arm in found["error"].index:
        k, alpha = arm.split() if "alpha" in arm else ("", "")
        other = f"{'mixup' if k == 'k=1' else 'k = 16'}, {alpha.replace('=', ' = ')}"
        cells = [names.get(arm, other)]
        for lines in found.values():
            line = lines.loc[arm]
            low, high = per_cent(line.low), per_cent(line.high)
            change = "" if arm == DEFAULT else f"{per_cent(line.change)} [{low}, {high}]"
            cells += [per_cent(line.regret), change, f"{100 * line.wins:.0f} %"]
        body.append(cells)
    head = [""]
    for name in found:
        head += [f"regret in {name}, %", "minus the default's", "lowest in"]
    return table(head, body)


def advised(study: Study) -> str:
    """Say whether advice from facts of a table beats a fixed setting."""
    found = advice(clean_errors(study))
    texts = []
    for other, name in (("default", "the default"), ("fixed", "the best setting on other tables")):
        difference = interval((100 * (found.advice - found[other])).tolist())
        texts.append(f"{difference.text} against {name} (p {p_text(difference.p)})")
    return " and ".join(texts)


def shown(study: Study) -> dict[str, object]:
    """Return the numbers of the picture; two splits give tables no interval."""
    effects = {title: study.arms(title, *pair) for title, pair in FOREST.items()}
    known = ("effect", "low", "high") if enough(study) else ("effect",)
    forest = {
        title: {
            name: [round(float(line[end]), 4) for end in known]
            for name, line in effect.tables.iterrows()
        }
        | {
            "all": [
                round(x, 4) for x in (effect.pooled.mean, effect.pooled.low, effect.pooled.high)
            ]
        }
        for title, effect in effects.items()
    }
    best = study.best()
    errors = study.wide(study.whole, "error")[list(ARMS)]
    errors = errors.rename(columns={arm: name.replace("*", "") for arm, name in ARMS.items()})
    errors = errors.assign(
        **{"mixup, tuned alpha": best.mixup, "k = 16, tuned alpha": best.matched}
    )
    # arms that some tables lack are not ranked
    means = errors.groupby("table").mean().dropna(axis="columns")
    ranked = rank(list(means.columns), means.to_numpy())
    ranks = dict(zip(ranked.names, (round(value, 3) for value in ranked.ranks), strict=True))
    return {
        "forest": forest, "ranks": ranks, "critical": round(ranked.critical or 0, 3),
        "tables": len(means),
    }  # fmt: skip


@styled
def draw(numbers: dict) -> Figure:
    """A forest plot for each comparison, above the mean ranks with the critical difference."""
    figure = Figure(figsize=(7.6, 10.6), layout="constrained")
    grid = figure.add_gridspec(2, len(FOREST), height_ratios=(4.4, 1))
    for i, (title, lines) in enumerate(numbers["forest"].items()):
        panel = figure.add_subplot(grid[0, i])
        _forest(panel, title, lines)
    _ranks(figure.add_subplot(grid[1, :]), numbers)
    return figure


def _forest(panel: Axes, title: str, lines: dict[str, list[float]]) -> None:
    order = sorted((name for name in lines if name != "all"), key=lambda name: lines[name][0])
    order = ["all", *order]
    for place, name in enumerate(reversed(order)):
        mean, *ends = lines[name]
        colour = ORANGE if name == "all" else BLUE
        panel.plot(ends, [place] * len(ends), color=colour, linewidth=1.2)
        panel.plot(mean, place, "D" if name == "all" else "o", color=colour, markersize=3.6)
    panel.axvline(0, color=BLACK, linewidth=0.8)
    panel.set_yticks(range(len(order)), list(reversed(order)), fontsize=6.5)
    panel.set_ylim(-0.7, len(order) - 0.3)
    ticks = (-50, -20, 0, 20, 50)
    panel.set_xticks([np.log1p(tick / 100) for tick in ticks], [signed(tick, 0) for tick in ticks])
    panel.set_xlim(np.log(0.4), np.log(1.8))
    panel.set_title(title)
    panel.set_xlabel("test error, %: below 0 is better")


def _ranks(panel: Axes, numbers: dict) -> None:
    ranks, critical = numbers["ranks"], numbers["critical"]
    names = list(reversed(ranks))
    first = min(ranks.values())
    panel.axvspan(first, first + critical, color=ORANGE, alpha=0.2, linewidth=0)
    panel.plot(list(reversed(ranks.values())), range(len(names)), "o", color=BLUE)
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.set_xlabel(
        f"mean rank of the test error on {numbers['tables']} tables; methods in the shaded range "
        "do not\ndiffer significantly from the first (Nemenyi's critical difference, 95 %)"
    )


def secondary(study: Study) -> str:
    """Return the secondary comparisons with the slopes of their family."""
    sloped, left = study.slope(), study.regressors().iloc[0]
    effects = study.secondary()
    body = [[effect.name, change(effect)] for effect in effects]
    for name, found in (
        ("log ratio of k = 16 to mixup, per unit of log alpha", sloped),
        ("the same at alpha = 1, per deviation of partners of other classes left", left),
    ):
        mean = found.slope if found is left else found.mean
        low, high = signed(found.low, 3), signed(found.high, 3)
        body.append([name, f"{signed(mean, 3)} [{low}, {high}]"])
    corrected = holm([*(effect.pooled.p for effect in effects), sloped.p, left.p])
    lines = [[*line, p_text(p)] for line, p in zip(body, corrected, strict=True)]
    return table(["", "change, 95 % interval", "p (Holm)"], lines)


def headline(effects: Sequence[Effect], splits: str, *, judged: bool) -> str:
    corrected = holm([effect.pooled.p for effect in effects])
    if not judged:
        return (
            f"**Preliminary: {splits} of {SPLITS} splits, clean labels.** No verdict is drawn from "
            f"fewer than {ENOUGH} splits of all tables. "
            f"So far, the default's error against ERM (training without mixup): "
            f"{change(effects[0])}; against ERM with label smoothing: "
            f"{change(effects[1])} ({len(effects[1].tables)} tables); against mixup at the same "
            f"alpha: {change(effects[2])}. "
            "These intervals are from what has run, and will change."
        )
    said = [f"{change(e)} ({verdict(e, p)})" for e, p in zip(effects, corrected, strict=True)]
    return (
        f"**The default changes the error by {said[0]} against ERM (training without mixup), "
        f"{said[1]} against ERM with label smoothing, and {said[2]} against mixup at the same "
        f"alpha. At alpha = 1, matched pairs change mixup's error by {said[3]}.**"
    )


def pages(rows: pd.DataFrame) -> dict[Path, str]:
    """Return the study's page and picture, and the other pages that cite it, by path."""
    study = Study(rows, "clean")
    primary = study.primary()
    numbers = shown(study)
    text = TEMPLATE.read_text(encoding="utf-8").format(
        headline=headline(primary, splits_of(study), judged=enough(study)),
        splits=splits_of(study),
        regimes=other_regimes(rows),
        setting=setting(study),
        advice=advised(study),
        units=len({CLUSTERS.get(name, name) for name in TABLES}),
        primary=family(primary, judged=enough(study)),
        arms=arms(study),
        alphas=alphas(study),
        secondary=secondary(study),
        most_rows=f"{MOST_ROWS:,}",
        batch=BATCH,
        rate=f"{RATE:g}",
        decay=f"{DECAY:g}",
        steps=f"{STEPS:,}",
        networks=f"{len(rows):,}",
        diverged=int((~rows.done).sum()),
        hours=f"{rows.seconds.sum() / 3600:.1f}",
    )
    return {
        ROOT / "docs/evidence/keel.md": text,
        ROOT / "docs/img/keel.svg": themed(draw(numbers), "keel", json.dumps(numbers)),
        **filled(facts(study, primary, splits_of(study))),
    }


def main() -> int:
    stale = 0
    for path, content in pages(read(HERE)).items():
        if "--check" not in sys.argv:
            path.write_text(content, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != content:
            print(f"{path.relative_to(ROOT)} is not what the rows say")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
