"""How far a load is: a line on a terminal, a bar in a notebook."""

from __future__ import annotations

import sys
import time

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Seconds before anything is shown, and between two changes of it.
_QUIET, _BEAT = 1.0, 0.1


def bar(wanted: bool | None) -> Progress | None:
    """What shows progress here; None if nothing is to be shown."""
    notebook = _notebook()
    if wanted is None:
        wanted = notebook or (sys.stderr is not None and sys.stderr.isatty())
    if not wanted:
        return None
    return NotebookProgress() if notebook else Progress()


def _notebook() -> bool:
    """Whether a kernel of Jupyter runs this program."""
    ipython = sys.modules.get("IPython")
    shell = getattr(ipython, "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


class Progress:
    """A line on stderr, once a load takes longer than a second."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown = 0.0

    def __call__(self, done: int, total: int) -> None:
        """So many bytes have been read of so many, 0 if that is not known."""
        now = time.monotonic()
        if now - self._began < _QUIET or now - self._shown < _BEAT:
            return
        self._shown = now
        self.show(*_words(done, total, now - self._began))

    def show(self, share: float | None, text: str) -> None:
        """Shows how much is done, of 1."""
        drawn = "" if share is None else f"{share:4.0%} |{'█' * round(share * 30):30}| "
        sys.stderr.write(f"\rreading traces: {drawn}{text} \033[K")
        sys.stderr.flush()

    def close(self) -> None:
        """Removes it."""
        if self._shown:
            self.clear()

    def clear(self) -> None:
        """Removes what is shown."""
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


class NotebookProgress(Progress):
    """A bar of the browser's."""

    _handle: Any = None

    def show(self, share: float | None, text: str) -> None:
        """Shows how much is done, of 1."""
        value = "" if share is None else f' value="{share:.3f}"'
        self._display(f"reading traces: <progress{value}></progress> {text}")

    def clear(self) -> None:
        """Removes what is shown."""
        self._display("")

    def _display(self, html: str) -> None:
        from IPython.display import HTML, display  # pyright: ignore[reportPrivateImportUsage]

        if self._handle is None:
            self._handle = display(HTML(html), display_id=True)
        else:
            self._handle.update(HTML(html))


def _words(done: int, total: int, seconds: float) -> tuple[float | None, str]:
    speed = done / seconds
    text = f"{done / 1e6:,.0f} MB, {speed / 1e6:,.0f} MB/s"
    if not total:
        return None, text
    left = (total - done) / speed if done else 0
    text = f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB, {speed / 1e6:,.0f} MB/s"
    return min(done / total, 1.0), f"{text}, {left:,.0f} s left" if done else text
