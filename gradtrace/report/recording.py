"""The events of a run in a file, to be judged again without the script and without torch.

`gradtrace check --record run.jsonl train.py` writes it line by line as things happen, so that it is whole up to the last
event even where the process is killed; `gradtrace check run.jsonl` judges it. Each line is one JSON object, version 2:

    {"format": "gradtrace.events", "version": 2, "gradtrace": "0.1.0", "torch": ..., "script": ..., "directory": ...}
    ... "rank": 1, "ranks": 2                                                   in the first line, of a job of several
    {"text": "/home/me/train.py", "source": "import torch\\n..."}                 a file that later lines name
    {"stack": 1, "sites": [{"path": ..., "line": 31, "function": "train"}]}     a stack that later lines name by its number
    {"event": "Backward", "number": 1, "request": "backward", "stack": 1 ...}   what happened: a class of model/events.py
    {"end": {"how": "finished"}, "remarks": [...], "files": [...], "lives": [...]}   the last line, if the run came to its end

What has its default is left out. Files come with their text, so that the report is the same wherever and whenever the
recording is judged: no file that it names is read, except to say that it has changed since.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, get_args

from gradtrace import __version__
from gradtrace.errors import DocumentError, OutputError
from gradtrace.host.descriptors import Descriptor
from gradtrace.model.events import End, Event, Recorded
from gradtrace.model.finding import Ended
from gradtrace.model.lives import Life, State
from gradtrace.model.schema import DamagedError, Reader, parsed
from gradtrace.model.site import Held, Site, Stack
from gradtrace.report import suppressions
from gradtrace.source import texts

FORMAT, VERSION = "gradtrace.events", 2
_KINDS: dict[str, type] = {kind.__name__: kind for kind in get_args(Recorded)}


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """What there is to know of a run beside its events."""

    script: str
    torch: str
    directory: str
    ended: Ended = field(default_factory=lambda: Ended("finished"))
    remarks: tuple[str, ...] = ()
    #: all files of the user's code that were loaded
    files: tuple[str, ...] = ()
    #: what became of each parameter, where it was followed
    lives: tuple[Life, ...] = ()
    #: which rank of a job of so many it was; 0 of 0 where it was no job
    rank: int = 0
    ranks: int = 0


class Recorder:
    """Writes one run. A disk that is full ends the recording, not the run: `close` then raises `OutputError`."""

    def __init__(self, path: Path, script: str, torch: str, rank: int = 0, ranks: int = 0) -> None:
        self._path, self._place = path, path.absolute()
        self._numbers: dict[Stack, int] = {}
        self._texts: set[str] = set()
        self._failed: OSError | None = None
        try:
            self._open(os.O_TRUNC)
        except OSError as error:
            self._fail(error)
        self._line(
            {"format": FORMAT, "version": VERSION, "gradtrace": __version__, "torch": torch, "script": script}
            | {"directory": os.getcwd()}
            | ({"rank": rank, "ranks": ranks} if ranks else {})
        )

    def _open(self, mode: int) -> None:
        self._descriptor = Descriptor(os.open(self._place, os.O_WRONLY | os.O_CREAT | mode, 0o666))
        self._file = open(self._descriptor.number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for the whole run

    def see(self, event: Event) -> None:
        """Writes the event out."""
        for path in getattr(event, "files", ()):
            self._text(path)
        self._line({"event": type(event).__name__, **self._plain(event)})

    def close(self, run: RecordedRun) -> None:
        """Writes the end of the run."""
        for path in run.files:
            if suppressions.ignores(path):
                self._text(path)
        end = {"end": self._plain(run.ended), "remarks": list(run.remarks), "files": list(run.files)}
        self._line(end | {"lives": self._plain(run.lives)})
        if self._failed is not None:
            self._fail(self._failed)
        self._descriptor.close()

    def _line(self, plain: dict[str, Any]) -> None:
        if self._failed is not None:
            return
        try:
            if not self._descriptor.is_ours:  # the script closed it
                self._open(os.O_APPEND)
            self._file.write(json.dumps(plain, separators=(",", ":")) + "\n")
            self._file.flush()
        except OSError as error:
            self._failed = error

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Held):
            self._text(value.path)
        if is_dataclass(value):
            return self._fields(value)
        if isinstance(value, State):
            return value.value
        if isinstance(value, tuple) and value and isinstance(value[0], Site):
            return self._stack(value)
        if isinstance(value, (tuple, frozenset)):
            return [self._plain(one) for one in value]
        return value

    def _fields(self, value: Any) -> dict[str, Any]:
        """Those that differ from their defaults."""
        found = {}
        for one in fields(value):
            held = getattr(value, one.name)
            if one.default is MISSING or held != one.default:
                found[one.name] = self._plain(held)
        return found

    def _stack(self, stack: Stack) -> int:
        number = self._numbers.get(stack)
        if number is None:
            number = self._numbers[stack] = len(self._numbers) + 1
            for site in stack:
                self._text(site.path)
            self._line({"stack": number, "sites": [site.plain() for site in stack]})
        return number

    def _text(self, path: str) -> None:
        """Writes the text of a file before the first line that names it."""
        if path not in self._texts:
            self._texts.add(path)
            source = "".join(texts.lines(path))
            if source:
                self._line({"text": path, "source": source})

    def _fail(self, error: OSError) -> NoReturn:
        why = error.strerror or error
        raise OutputError(f"cannot write the recording {self._path}: {why}; name another place") from error


class Recording:
    """One recorded run. Raises `DocumentError` where the file is none, or where a line of it is damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stacks: dict[int, Stack] = {}
        self._ended = False
        self._reader = Reader({Stack: self._stack}, strict=True)
        #: the lines of each file, as far as they have been read
        self.files: dict[str, Sequence[str]] = {}
        try:
            self._lines = path.read_bytes().decode().split("\n")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise DocumentError(f"cannot read the recording {path}: {why}") from error
        self.run = self._head()

    def events(self) -> Iterator[Event]:
        """The events; then `run` is complete. Of a run that was killed the end is made up."""
        for number, line in enumerate(self._lines[1:-1], 2):  # what follows the last line end was not written in full
            event = self._read(number, line)
            if event is not None:
                yield event
        if not self._ended:
            yield End()
            ended_early = "the recording has no end: the run was killed, and what came later was not judged"
            self.run = replace(self.run, ended=Ended("killed", 137), remarks=(ended_early,))

    def _read(self, number: int, line: str) -> Event | None:
        """The event that a line holds; other lines say what later ones need."""
        try:
            plain = _object(parsed(line))
            if "event" in plain:
                return self._event(plain)
            if "stack" in plain:
                self._add_stack(plain)
            elif "text" in plain:
                self._add_text(plain)
            else:
                self._end(plain)
        except DamagedError as error:
            raise DocumentError(f"line {number} of {self._path} is damaged: {error}; record it again") from None
        return None

    def _head(self) -> RecordedRun:
        try:
            head = _object(parsed(self._lines[0]))
        except DamagedError:
            head = {}
        if head.get("format") != FORMAT or "version" not in head:
            raise DocumentError(f"{self._path} is not a gradtrace recording; make one with check --record")
        if head["version"] != VERSION:
            raise DocumentError(
                f"{self._path} is a recording of another version, and this gradtrace reads version {VERSION}: "
                "record the run again"
            )
        try:
            script, torch, directory = (self._head_text(head, name) for name in ("script", "torch", "directory"))
            rank, ranks = (self._reader.read(int, head.get(name, 0)) for name in ("rank", "ranks"))
            if not os.path.isabs(directory) or "\0" in directory:
                raise DamagedError("it is not an absolute path", "directory")
        except DamagedError as error:
            raise DocumentError(f"line 1 of {self._path} is damaged: {error}; record it again") from None
        return RecordedRun(script, torch, directory, rank=rank, ranks=ranks)

    def _head_text(self, head: dict[str, Any], name: str) -> str:
        if name not in head:
            raise DamagedError(f"{name} is missing")
        text: str = self._reader.read(str, head[name])
        return text

    def _event(self, plain: dict[str, Any]) -> Event:
        name = plain.pop("event")
        if not isinstance(name, str) or name not in _KINDS:
            raise DamagedError("it is no event that this gradtrace knows")
        event: Event = self._reader.read(_KINDS[name], plain)
        return event

    def _add_stack(self, plain: dict[str, Any]) -> None:
        number = self._reader.read(int, plain["stack"])
        self._stacks[number] = Reader(strict=True).read(Stack, plain.get("sites"))

    def _add_text(self, plain: dict[str, Any]) -> None:
        path = self._reader.read(str, plain["text"])
        source = self._reader.read(str, plain.get("source"))
        self.files[path] = io.StringIO(source).readlines()

    def _end(self, plain: dict[str, Any]) -> None:
        ended = self._reader.read(Ended, plain.get("end"))
        if ended.exception is not None and not ended.exception.strip():
            raise DamagedError("it is empty", "end.exception")
        remarks = self._reader.read(tuple[str, ...], plain.get("remarks"))
        files = self._reader.read(tuple[str, ...], plain.get("files"))
        lives = self._reader.read(tuple[Life, ...], plain.get("lives", []))
        self._ended = True
        self.run = replace(self.run, ended=ended, remarks=remarks, files=files, lives=lives)

    def _stack(self, value: Any) -> Stack:
        if value == []:
            return ()
        number = self._reader.read(int, value)
        if number not in self._stacks:
            raise DamagedError(f"there is no stack {number}")
        return self._stacks[number]


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DamagedError("it is no object")
    return value
