"""Records the files that this process imports, opens and loads, and the programs it starts."""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from importlib.machinery import FileFinder

from .commands import is_python, unwatched, which
from .ownership import HOOK, VARIABLE, OwnCodeFirst, Ownership, decoded
from .record import (
    GO_ON,
    PAUSE,
    Record,
    are_looks_complete,
    ask,
    begin_looks,
    keep_looks,
    leave_out_listing,
)

TYPE_CHECKING = False  # as in ``ownership``
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from importlib.machinery import ModuleSpec
    from types import FrameType, ModuleType
    from typing import Any, NoReturn

_WRITES = os.O_WRONLY | os.O_TRUNC
_INTERPRETERS = frozenset({"_interpreters", "_xxsubinterpreters"})
"""Modules that create subinterpreters, whose imports this process's finders don't see."""
_WALKS = ("os", "glob", "pathlib", "pathlib/__init__", "pathlib/_local", "pathlib/_os")
_WALKERS = frozenset(
    {"<frozen os>", *(f"{os.path.dirname(os.__file__)}/{name}.py" for name in _WALKS)}
)
"""Files of Python's own code that walks folders. Of an entry, it asks for its kind only."""
_METADATA_READERS = ("/importlib/metadata/__init__.py", "/importlib_metadata/__init__.py")
"""Ends of the files whose code reads the metadata of distributions."""
_READERS_OF_A_GROUP = (*_METADATA_READERS, "/pluggy/_manager.py", "/perfci/plugins.py")
"""Ends of the files whose code reads a group of entry points."""


def begin_in_child() -> None:
    """Watch this process, if a worker started it."""
    text = os.environ.get(VARIABLE)
    if text:
        import atexit

        watch = CodeWatch(text, in_child=True)
        watch.install()
        for script in sys.orig_argv[1:2]:  # recorded here, as a shell may have started the script
            if not script.startswith("-"):
                watch.note("run", script)
        atexit.register(watch.look)


def begin_in_worker(environment: Mapping[str, str]) -> CodeWatch | None:
    """Watch this worker and its children. Return None if no watch was asked for."""
    text = environment.get(VARIABLE)
    if not text:
        return None
    watch = CodeWatch(text, in_child=False)
    passed = os.environ.get("PYTHONPATH")
    folders = (HOOK, *watch.side.folders, *([passed] if passed else []))
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)
    sys.path.insert(0, HOOK)  # some libraries, like Inductor, pass `sys.path` on to children
    watch.install()
    return watch


class CodeWatch:
    """Watches this process: an audit hook, a finder, and the library below Python."""

    def __init__(self, text: str, *, in_child: bool) -> None:
        settings = decoded(text)
        self.side = Ownership(settings, in_child=in_child)
        self.record = Record(settings["events"][0])
        self._known: set[str] = set()
        self._modules: dict[tuple[str, str], None] = {}  # (folder, name) that a finder looked for
        self._plain: set[str] = set()  # own folders whose path is their real path
        self._in_child = in_child
        self._is_seen = False  # whether the library below Python records this process
        self._keeps = False  # the library keeps its records until the last look
        self._due: set[int] = set()  # threads that are about to load a library

    def install(self) -> None:
        """Put the finder first and add the audit hook, for the life of this process."""
        sys.meta_path.insert(0, OwnCodeFirst(self))
        sys.addaudithook(self._hook())
        os.register_at_fork(after_in_child=self._begin_in_fork)
        self._exit_after_a_look()
        self._see_modules_asked_for()
        self.record.greet()
        self._see_from_below(keeps=not self._in_child)

    def go_on(self, environment: Mapping[str, str]) -> None:
        """Continue as a fork with its own file of events, which also gets the events so far."""
        self.record.go_on_in(decoded(environment[VARIABLE])["events"][0])
        self._see_from_below(keeps=True)

    def note(self, how: str, path: str, name: str = "") -> None:
        """Write down that ``path`` was run or read, if that matters."""
        self._note_real(how, self.side.real(path), name)

    def _note_real(self, how: str, real: str, name: str = "") -> None:
        if self.side.matters(how, real, name):
            self.record.say(how, real, name)

    def look(self) -> None:
        """Write down all modules and all files mapped into this process and its living children.

        A file that C code mapped may have been seen nowhere else.
        """
        ask(PAUSE, 0)  # for good: the process ends after this, or runs no more of the user's code
        self._say_modules()
        for name, module in list(sys.modules.items()):
            if isinstance(module, type(sys)):
                for path in _files_of(vars(module)):
                    self.note("import", path, name)
        self._look_at_maps("self")
        living = []
        for pid in _descendants(os.getpid()):
            try:
                program = os.readlink(f"/proc/{pid}/exe")
                self._look_at_maps(pid)
            except OSError:  # the child has ended meanwhile, and has written down what it ran
                continue
            if is_python(program):
                self.record.say("living", program, pid)
                living.append(pid)
        self.record.await_greetings(living)
        if self._is_seen and not are_looks_complete():
            self.record.say("blind", "", "not all was written down")
        self.record.looked()

    def _hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        handlers: dict[str, Callable[..., None]] = {
            "import": self._imported,
            "ctypes.dlopen": self._loaded,
            "sqlite3.connect": self._connected,
            "os.kill": self._killed,
            "os.killpg": lambda _, number: self._killed(0, number),
            "subprocess.Popen": self._started,
            "os.exec": lambda path, words, environment: self._started(
                path, words, None, environment
            ),
            "os.posix_spawn": lambda path, words, environment: self._started(
                path, words, None, environment
            ),
            "os.system": lambda line: self._started("/bin/sh", ["sh", "-c", line], None, None),
            "perfci.command": self._commanded,
            "os.listdir": self._listed,
            "os.scandir": lambda path: self._listed(path, entries=True),
            "socket.connect": self._reached,
        }
        handler_of = handlers.get
        due = self._due

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if due and (thread := get_ident()) in due:  # the library is mapped by now
                due.discard(thread)
                self._look_at_maps("self")
            if event == "open":
                self._opened(*arguments)
            elif event == "import" and arguments[1] is None and arguments[0] not in _INTERPRETERS:
                return  # an import by a finder, which reports it
            elif (handler := handler_of(event)) is not None:
                self.unrecorded(handler, *arguments)

        return hook

    def unrecorded(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``act`` and return its result. Files that it looks at are not recorded."""
        ask(PAUSE, 0)
        try:
            return act(*arguments)
        finally:
            ask(GO_ON, 0)

    def _opened(self, path: Any, mode: Any = "r", flags: Any = 0) -> None:
        if path in self._known or isinstance(path, int) or (flags or 0) & _WRITES:
            return
        bytecode = isinstance(path, str) and path.endswith(".pyc")
        # the library below Python already records bytecode in plain own folders
        if not (bytecode and path.rpartition("/")[0] in self._plain):
            self.unrecorded(self._note_opened, path, mode)

    def _note_opened(self, path: Any, mode: Any) -> None:
        text = os.fsdecode(path)
        real = self.side.real(text)
        if self._is_seen and real == text and real.startswith(self.side.own):
            self._plain.add(real.rpartition("/")[0])
        self._note_real("open", real)
        # not remembered as known: each read of entry points may ask for another group
        if self.side.declares_entry_points(real):
            self.record.say("entry points", real, _asked_group())
            return
        if not text.startswith("/"):  # after a chdir, the same text is another file
            if mode is None:  # from os.open, whose `dir_fd` the event doesn't have
                self._opened_below(text)
        elif real == text:  # not a link, which may lead elsewhere the next time
            self._known.add(text)

    def _opened_below(self, path: str) -> None:
        """Write down the file ``path`` below each folder that this process has open, if it exists.

        One of these folders is the unknown ``dir_fd``.
        """
        for descriptor in os.listdir("/proc/self/fd"):
            try:
                file = os.path.join(os.readlink(f"/proc/self/fd/{descriptor}"), path)
            except OSError:  # the descriptor of this listing, closed by now
                continue
            if os.path.isfile(file):
                self.note("open", file)

    def _connected(self, database: Any) -> None:
        text = os.fsdecode(database) if isinstance(database, (str, bytes, os.PathLike)) else ""
        if text.startswith("file:") and not os.path.exists(text):
            from urllib.parse import unquote, urlsplit

            self._note_opened(unquote(urlsplit(text).path), "r")
        else:
            self._opened(database)

    def _imported(self, name: Any, file: Any, *_: Any) -> None:
        if name in _INTERPRETERS and (file or name in sys.builtin_module_names):
            self.record.say("unwatched", sys.executable or "", f"a subinterpreter ({name})")
        if isinstance(file, str):  # an extension module's shared library
            self.note("load", file, str(name))
            if self.side.place(self.side.real(file)):  # it may be linked with any other library
                self._due.add(get_ident())

    def _loaded(self, path: Any) -> None:
        if isinstance(path, (str, bytes)):
            if os.fsencode(path).startswith(b"/"):
                self.note("load", os.fsdecode(path))
            self._due.add(get_ident())

    def _killed(self, pid: int, number: int) -> None:
        """Write down the files mapped into a process that this process is about to end."""
        if number:
            for descendant in (str(pid),) if pid > 0 else tuple(_descendants(os.getpid())):
                try:
                    self._look_at_maps(descendant)
                except OSError:  # the process has ended, or belongs to another user
                    continue

    def _started(self, program: Any, words: Any, folder: Any, environment: Any) -> None:
        try:
            is_single = isinstance(words, (str, bytes, os.PathLike))
            texts = [os.fsdecode(word) for word in ([words] if is_single else words)]
            path = which(os.fsdecode(program) if program else texts[0])
        except (TypeError, IndexError, ValueError):  # wrong arguments: the caller gets the error
            return
        self.record.say("started", path, "")
        self.note("run", path)
        for word in texts[1:]:  # a compiler's sources
            file = os.path.join(os.fsdecode(folder) if folder else "", word)
            if os.path.isfile(file) and self.side.place(self.side.real(file)) == "own":
                self.note("open", file)
        for how, what in unwatched(path, texts, os.environ if environment is None else environment):
            self.record.say(how, path, what)

    def _commanded(self, program: str) -> None:
        self.note("run", which(program))
        self.record.say("program", program, f"command {program}")

    def _look_at_maps(self, pid: str) -> None:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as maps:
            mapped = [line.rstrip("\n") for line in maps if "/" in line]
        runs = {line[line.index("/") :] for line in mapped if line.split(" ", 2)[1][2] == "x"}
        for path in {line[line.index("/") :] for line in mapped}:
            self.note("map" if path in runs else "open", path.removesuffix(" (deleted)"))

    def _begin_in_fork(self) -> None:
        self._due.clear()
        self._keeps = False
        self.record.begin_in_fork()
        self._say_modules()

    def _exit_after_a_look(self) -> None:
        """Make ``os._exit`` record mapped files first: forks of ``multiprocessing`` end by it."""
        leave = os._exit

        def look_and_leave(status: int) -> NoReturn:
            try:
                self._look_at_maps("self")
            finally:
                leave(status)

        os._exit = look_and_leave

    def _see_from_below(self, *, keeps: bool) -> None:
        """Have the library below Python begin to record the files that any code looks at.

        In a worker, the library ``keeps`` its records until the last look. A child may end without
        a last look, so there each record is written at once.
        """
        self._is_seen = begin_looks()
        self._keeps = keeps
        if keeps:
            keep_looks()
        if not self._is_seen:
            self.record.say("blind", sys.executable or "", "the library isn't loaded")

    def _see_modules_asked_for(self) -> None:
        """Make finders report which module they look for in which folder.

        The files that finders look at are not recorded. They would say nothing, because a finder
        keeps a folder's listing and answers from it.
        """
        find, modules, order = FileFinder.find_spec, self._modules, ask
        pause, go_on = PAUSE, GO_ON  # the module's globals are gone when the interpreter ends

        def find_spec(
            finder: FileFinder, name: str, target: ModuleType | None = None
        ) -> ModuleSpec | None:
            order(pause, 0)
            try:
                key = finder.path, name
                if key not in modules:
                    modules[key] = None
                    if not self._keeps:
                        self._say_module(*key)
                return find(finder, name, target)
            finally:
                order(go_on, 0)

        FileFinder.find_spec = find_spec  # type: ignore[assignment, method-assign]

    def _say_modules(self) -> None:
        for folder, name in self._modules:
            self._say_module(folder, name)

    def _say_module(self, folder: str, name: str) -> None:
        real = self.side.real_folder(folder)
        if real.startswith(self.side.own):
            self.record.say("module", f"{real}{name.rpartition('.')[2]}", "")

    def _listed(self, path: Any, *, entries: bool = False) -> None:
        """Write down that an own folder was listed, and which entries or facts of them may matter.

        Listings by Python's imports are left out: imports look for known names, and the modules
        they find are recorded. Readers of packages' metadata use only the entries of distributions.
        If the caller gets ``entries`` (``os.scandir``), it may use more than their names: Python's
        own walks use their kind, other code may use their sizes.
        """
        leave_out_listing()
        frame = sys._getframe(4 if entries else 3)  # noqa: SLF001 (the caller, above the hook)
        caller = frame.f_code.co_filename
        if caller.startswith("<frozen importlib"):
            return
        how = "list"
        if caller.endswith(_METADATA_READERS):
            how = "distributions"
        elif entries:
            how = "kinds" if caller in _WALKERS else "sizes"
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        text = os.fsdecode(path or ".")
        real = self.side.real(text)
        if f"{real}/".startswith(self.side.own):
            self.record.say(how, real, "")

    def _reached(self, _: Any, address: Any) -> None:
        """Write down that the process connected to a server, whose answers are unknown.

        Servers of this process's own children are left out. They listen in its temporary folder or
        under a name of ``multiprocessing``'s.
        """
        if isinstance(address, (str, bytes)):
            text = os.fsdecode(address)
            if text.startswith("\0listener-") or self.side.real(text).startswith(
                self.side.temporary
            ):
                return
        self.record.say("network", ascii(address)[:100], "")


def _asked_group() -> str:
    """Return the group of entry points that the caller asks for, or an empty text if unknown.

    A reader reads the file with all groups, whichever it wants, so the file alone doesn't tell.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    while frame is not None:
        if frame.f_code.co_filename.endswith(_READERS_OF_A_GROUP):
            names = frame.f_locals
            group = names.get("group") or names.get("params", {}).get("group")
            if isinstance(group, str):
                return group
        frame = frame.f_back
    return ""


def _files_of(names: Mapping[str, Any]) -> Iterator[str]:
    spec = names.get("__spec__")
    origin = getattr(spec, "origin", None)
    for path in (names.get("__file__"), origin, getattr(names.get("__loader__"), "archive", None)):
        if isinstance(path, str) and path.startswith("/"):
            yield path


def _descendants(pid: int) -> Iterator[str]:
    waiting = [str(pid)]
    while waiting:
        parent = waiting.pop()
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as file:
                    children = file.read().split()
                yield from children
                waiting += children
        except OSError:  # the process has ended, or the kernel doesn't list children
            continue
