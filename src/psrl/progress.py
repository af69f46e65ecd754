"""What one sees while runs go on: a live line on a terminal, a plain line now and then elsewhere. Curves in text."""

import math
import shutil
import sys
import time
from types import TracebackType

from tqdm import tqdm

from psrl.checkpoint import Snapshot
from psrl.config import Run

EVERY = 30  # seconds between two lines where there is no terminal


class Line:
    """One line on standard error, replaced on a terminal, else written at most every 30 seconds."""

    def __init__(self) -> None:
        self.live, self.shown = sys.stderr.isatty(), time.monotonic()

    def update(self, text: str) -> None:
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            print("\r" + text[:width].ljust(width), end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self.shown >= EVERY:
            self.shown = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.live:
            print("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r", end="", file=sys.stderr, flush=True)


class Bar:
    """Progress of one unit in this process: episode, return, time left; it moves with every environment step."""

    def __init__(self, unit: Run, start: Snapshot | None):
        done = len(start.episodes) if start else 0
        self.unit, self.line = unit, Line()
        self.label = f"{unit.task} {unit.method} {unit.reward}"
        if len(unit.seeds) == 1:
            self.label += f" seed {unit.seeds[0]}"
        self.bar = tqdm(
            total=unit.episodes * unit.steps,
            initial=min(done, unit.episodes) * unit.steps,
            desc=self.label,
            bar_format="{desc} |{bar}| {percentage:.0f}%{postfix}, {remaining} left",
            dynamic_ncols=True,
            disable=not self.line.live,
        )
        self._show(start)

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.bar.close()

    def step(self, step: int) -> None:
        self.bar.update(1)

    def finished(self, snapshot: Snapshot) -> None:
        self._show(snapshot)
        if not self.line.live:
            left = (self.unit.episodes - len(snapshot.episodes)) * snapshot.episodes[-1]["wall"]
            self.line.update(f"{self.label} {self.text}, about {duration(left)} left")

    def _show(self, snapshot: Snapshot | None) -> None:
        done = snapshot.episodes if snapshot else []
        self.text = f"episode {len(done)}/{self.unit.episodes}"
        if done:
            self.text += f", return {sum(done[-1]['returns']) / len(done[-1]['returns']):.1f}"
        self.bar.set_postfix_str(self.text)


def duration(seconds: float) -> str:
    """45 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def curve(returns: dict[int, list[float]], width: int = 48) -> str:
    """A learning curve in text: per episode the mean, the range over trials, and both drawn to a common scale."""
    values = [value for trials in returns.values() for value in trials if math.isfinite(value)]
    low, high = min(values, default=0.0), max(values, default=0.0)
    size = max(len(text) for text in ("highest", *(f"{value:.1f}" for value in values)))

    def column(value: float) -> int:
        return round((value - low) / (high - low) * (width - 1)) if high > low else 0

    lines = [f"episode  {'mean':>{size}}  [{'lowest':>{size}}, {'highest':>{size}}]"]
    for episode, trials in returns.items():
        mean, least, most = sum(trials) / len(trials), min(trials), max(trials)
        drawing = [" "] * width
        if math.isfinite(mean):  # else a trial diverged, and there is nothing to draw
            drawing[column(least) : column(most) + 1] = "─" * (column(most) + 1 - column(least))
            drawing[column(mean)] = "●"
        text = f"{episode:7d}  {mean:{size}.1f}  [{least:{size}.1f}, {most:{size}.1f}]"
        lines.append(f"{text}  {''.join(drawing)}".rstrip())
    return "\n".join(lines)
