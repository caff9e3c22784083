"""One process of a side: its own tree is imported first, and what it runs is written down.

Imported by a worker as part of perfci, and by its Python children from ``PYTHONPATH``, so that it
imports nothing but the standard library. What is found goes line by line to a file that the parent
reads: a process that ends by ``os._exit`` or a signal loses nothing.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder

TYPE_CHECKING = False  # typing, json and re would double the start of a child
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType
    from typing import Any, NoReturn

if TYPE_CHECKING or __package__:  # in a worker; a child of one has this folder on its path
    from perfci.worker.hook.perfci_commands import HOOK, VARIABLE, is_python, unwatched, which
else:
    from perfci_commands import HOOK, VARIABLE, is_python, unwatched, which

_ENTRY, _BETWEEN, _END = "\x1e", "\x1f", "\0"
_WRITES = os.O_WRONLY | os.O_TRUNC
_INTERPRETERS = frozenset({"_interpreters", "_xxsubinterpreters"})
"""Modules that make interpreters, which have finders of their own."""
_GREETING_S = 2.0
_SYSTEM = ("/usr/lib", "/usr/local/lib/", "/usr/bin/", "/usr/sbin/", "/lib", "/bin/", "/sbin/")
"""Where a system's libraries and programs lie: the same for both sides."""
_RUNS = frozenset({"import", "load", "map"})
_METADATA_READERS = ("/importlib/metadata/__init__.py", "/importlib_metadata/__init__.py")


class Watch:
    """The watch of this process. Its settings are those of the side's ``Places``."""

    def __init__(self, text: str, *, in_child: bool) -> None:
        settings = _decoded(text)
        self.folders: tuple[str, ...] = tuple(settings["python_path"])
        self.own: tuple[str, ...] = tuple(settings["own"])
        self.strange: tuple[str, ...] = tuple(settings["strange"])
        self.copies: tuple[str, ...] = tuple(settings["copies"])
        # a child has no business in the perfci that measures, but for this folder
        harness = (f"{HOOK}/",) if in_child else settings["harness"]
        self.spared: tuple[str, ...] = (*settings["spared"], *harness)
        prefix = f"{os.path.realpath(sys.prefix)}/"  # a child may run another environment's Python
        own_prefix = () if prefix in settings["checkout"] else (prefix,)
        self.pythons: tuple[str, ...] = (*settings["pythons"], *own_prefix)
        self.checkout: tuple[str, ...] = tuple(settings["checkout"])
        self.clones: tuple[str, ...] = tuple(settings["clones"])
        self.names: frozenset[str] = frozenset(settings["names"])
        self.installed: frozenset[str] = frozenset(settings["installed"])
        self.benchmarks: tuple[str, ...] = tuple(settings["benchmarks"])
        self.temporary: tuple[str, ...] = tuple(settings["temporary"])
        prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.__file__)}
        self._usual = (*_SYSTEM, *(f"{os.path.realpath(one)}/" for one in prefixes))
        (self._file,) = settings["events"]
        self._seen: dict[tuple[str, str, str], None] = {}
        self._known: set[str] = set()
        self._known_looks: set[Any] = set()
        self._real_folders: dict[str, tuple[str, tuple[int, int] | None]] = {}
        self._late: list[bytes] = []  # what could not be written as yet
        self._why_late = ""
        self._due: set[int] = set()  # threads that are about to load a library
        self._own_looks: set[int] = set()  # threads in which this watch itself looks at files

    def install(self) -> None:
        """Put the finder first and add the audit hook, for the life of this process."""
        sys.meta_path.insert(0, OwnCodeFirst(self))
        sys.addaudithook(self._hook())
        os.register_at_fork(after_in_child=self._begin_in_fork)
        self._exit_after_a_look()
        self._see_what_is_asked()
        self._greet()

    def go_on(self, environment: Mapping[str, str]) -> None:
        """Go on as a fork that has a file of its own: it gets what was found until now, too."""
        (self._file,) = _decoded(environment[VARIABLE])["events"]
        self._late.clear()  # it is the other file's, and comes again
        for how, path, name in self._seen:
            self._write(how, path, name)
        self._greet()

    def place(self, path: str) -> str:
        """Return whose the real ``path`` is; empty for what is nobody's here."""
        places = {
            "own": self.own,
            "spared": self.spared,
            "strange": self.strange,
            "copy": self.copies,
            "": self.pythons,
            "checkout": self.checkout,
        }
        found = (place for place, folders in places.items() if path.startswith(folders))
        return next(found, "strange" if path.startswith(self.clones) else "")

    def note(self, how: str, path: str, name: str = "") -> None:
        """Write down that ``path`` was run or read, where it lies in a place that matters.

        What runs and lies in no place that is known matters, too: it may be another on each side.
        """
        real = self.real(path)
        place = self.place(real)
        nowhere = not place and not real.startswith(self._usual)
        foreign = how in _RUNS and (nowhere or real.startswith(self.temporary))
        if not place and name.partition(".")[0] in self.names and "-packages/" in real:
            place = "copy"
        if foreign or (place and place != "spared"):
            self.say(how, real, name)

    def look(self) -> None:
        """Write down all that is loaded: modules, and what is mapped into this process.

        Living children, too: what C code opened is seen nowhere else.
        """
        self._own_looks.add(get_ident())  # this process ends, or takes no more orders
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
            except OSError:  # it has ended meanwhile, and has written down what it ran
                continue
            if is_python(program):
                self.say("living", program, pid)
                living.append(pid)
        self._await_greetings(living)
        self._write("looked", "", str(os.getpid()))

    def real(self, path: str) -> str:
        """Return the real path; each folder is resolved once."""
        folder, _, leaf = os.path.abspath(path).rpartition("/")
        real, behind = self._real_folders.get(folder, ("", None))
        if not real or (behind is not None and behind != _identity(folder)):
            real = os.path.realpath(folder or "/")
            # a link may be pointed elsewhere later on
            behind = _identity(folder) if real != folder else None
            self._real_folders[folder] = real, behind
        whole = f"{real.rstrip('/')}/{leaf}"
        return os.path.realpath(whole) if os.path.islink(whole) else whole

    def _hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        handlers: dict[str, Callable[..., None]] = {
            "open": self._opened,
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
            "os.system": self._shell,
            "perfci.command": lambda path: self.say("program", path, f"command {path}"),
            "os.listdir": self._listed,
            "os.scandir": self._listed,
            "socket.connect": self._reached,
        }
        handler_of = handlers.get
        due = self._due

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if due and (thread := get_ident()) in due:  # what it was about to load is there now
                due.discard(thread)
                self._look_at_maps("self")
            handler = handler_of(event)
            if handler is not None:
                self.looking_itself(handler, *arguments)

        return hook

    def looking_itself(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """Return what ``act`` does: the files that it looks at, nobody of the side's asked for."""
        thread = get_ident()
        if thread in self._own_looks:
            return act(*arguments)
        self._own_looks.add(thread)
        try:
            return act(*arguments)
        finally:
            self._own_looks.discard(thread)

    def _opened(self, path: Any, mode: Any = "r", flags: Any = 0) -> None:
        if path in self._known or isinstance(path, int) or (flags or 0) & _WRITES:
            return
        text = os.fsdecode(path)
        self.note("open", text)
        if not text.startswith("/"):  # another one after a chdir
            if mode is None:  # os.open, whose `dir_fd` is in no event
                self._opened_below(text)
        elif self.real(text) == text:  # a link may lead elsewhere the next time
            self._known.add(text)

    def _opened_below(self, path: str) -> None:
        """Write down the files that ``path`` is below the folders that this process has open."""
        for descriptor in os.listdir("/proc/self/fd"):
            try:
                file = os.path.join(os.readlink(f"/proc/self/fd/{descriptor}"), path)
            except OSError:  # the one that listed them
                continue
            if os.path.isfile(file):
                self.note("open", file)

    def _connected(self, database: Any) -> None:
        text = os.fsdecode(database) if isinstance(database, (str, bytes, os.PathLike)) else ""
        if text.startswith("file:") and not os.path.exists(text):
            from urllib.parse import unquote, urlsplit

            self._opened(unquote(urlsplit(text).path))
        else:
            self._opened(database)

    def _imported(self, name: Any, file: Any, *_: Any) -> None:
        if name in _INTERPRETERS and (file or name in sys.builtin_module_names):
            self.say("unwatched", sys.executable or "", f"a subinterpreter ({name})")
        if isinstance(file, str):  # an extension module's shared library
            self.note("load", file, str(name))
            if self.place(self.real(file)):  # what it is linked with may be anybody's
                self._due.add(get_ident())

    def _loaded(self, path: Any) -> None:
        if isinstance(path, (str, bytes)):
            if os.fsencode(path).startswith(b"/"):
                self.note("load", os.fsdecode(path))
            self._due.add(get_ident())

    def _killed(self, pid: int, number: int) -> None:
        """Look at what a process has mapped that this one is about to end."""
        if number:
            for one in (str(pid),) if pid > 0 else tuple(_descendants(os.getpid())):
                try:
                    self._look_at_maps(one)
                except OSError:  # it has ended, or is another user's
                    continue

    def _started(self, program: Any, words: Any, folder: Any, environment: Any) -> None:
        try:
            one = isinstance(words, (str, bytes, os.PathLike))
            texts = [os.fsdecode(word) for word in ([words] if one else words)]
            path = which(os.fsdecode(program) if program else texts[0])
        except (TypeError, IndexError, ValueError):  # whoever starts this gets the error
            return
        self.note("run", path)
        for word in texts[1:]:  # a compiler's sources
            file = os.path.join(os.fsdecode(folder) if folder else "", word)
            if os.path.isfile(file) and self.place(self.real(file)) == "own":
                self.note("open", file)
        for how, what in unwatched(path, texts, os.environ if environment is None else environment):
            self.say(how, path, what)

    def _shell(self, command: Any) -> None:
        self._started("/bin/sh", ["sh", "-c", command], None, None)

    def _await_greetings(self, pids: Sequence[str]) -> None:
        """Give children that have just been started the time to say that they are watched."""
        until = time.monotonic() + _GREETING_S
        while pids and time.monotonic() < until:
            try:
                with open(self._file, "rb") as file:
                    found = decoded_events(file.read())
            except OSError:  # it was removed, and the parent says so
                return
            if set(pids) <= {name for how, _, name in found if how == "watched"}:
                return
            time.sleep(0.02)

    def _look_at_maps(self, pid: str) -> None:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as maps:
            mapped = [line.rstrip("\n") for line in maps if "/" in line]
        runs = {line[line.index("/") :] for line in mapped if line.split(" ", 2)[1][2] == "x"}
        for path in {line[line.index("/") :] for line in mapped}:
            self.note("map" if path in runs else "open", path.removesuffix(" (deleted)"))

    def _begin_in_fork(self) -> None:
        self._due.clear()
        self._late.clear()  # the parent process writes that
        self._greet()

    def _exit_after_a_look(self) -> None:
        """Have ``os._exit`` look first, with which forks of ``multiprocessing`` end."""
        leave = os._exit

        def look_and_leave(status: int) -> NoReturn:
            try:
                self._look_at_maps("self")
            finally:
                leave(status)

        os._exit = look_and_leave

    def _see_what_is_asked(self) -> None:
        """Have ``os.stat`` and its like say what they look at: there is no event of it.

        Whether a file is there can decide what runs, and nothing opens it.
        """
        for ask in (os.stat, os.lstat, os.access):
            seen = self._asking(ask)
            for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
                if ask in able:
                    able.add(seen)
            if ask in os.supports_effective_ids:
                os.supports_effective_ids.add(seen)
            setattr(os, ask.__name__, seen)

    def _asking(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def asking(path: Any, *arguments: Any, **options: Any) -> Any:
            self._asked(path, options.get("dir_fd"))
            return ask(path, *arguments, **options)

        for name in ("__name__", "__qualname__", "__doc__"):
            setattr(asking, name, getattr(ask, name))
        asking.__module__ = "os"  # where a pickle looks for it
        asking.__wrapped__ = ask  # type: ignore[attr-defined]
        return asking

    def _asked(self, path: Any, folder: int | None) -> None:
        if isinstance(path, int) or path in self._known_looks or get_ident() in self._own_looks:
            return
        try:
            text = os.fsdecode(path)
        except TypeError:  # whoever asks gets the error
            return
        if text.startswith("/"):
            self._known_looks.add(text)
        elif folder is not None:
            text = os.path.join(_path_of(folder), text)
        self.looked_for(os.path.abspath(text))

    def looked_for(self, path: str) -> None:
        """Write down that somebody asked whether a file of the side's own is there, say."""
        if path.startswith(self.own):
            self.say("stat", path, "")

    def _listed(self, path: Any) -> None:
        """Write down that a folder of the side's own was listed, but for Python's own imports.

        These look for names that they know: what they find is written down. Whoever looks for
        packages' metadata doesn't look at the rest.
        """
        caller = sys._getframe(3).f_code.co_filename  # noqa: SLF001 (behind the hook)
        if caller.startswith("<frozen importlib"):
            return
        text = _path_of(path) if isinstance(path, int) else os.fsdecode(path or ".")
        real = self.real(text)
        if f"{real}/".startswith(self.own):
            metadata = caller.endswith(_METADATA_READERS)
            self.say("distributions" if metadata else "list", real, "")

    def _reached(self, _: Any, address: Any) -> None:
        """Write down that a server was reached: what it answers isn't known.

        Those of this process's children listen in its temporary folder, or under a name of
        ``multiprocessing``'s.
        """
        if isinstance(address, (str, bytes)):
            text = os.fsdecode(address)
            if text.startswith("\0listener-") or self.real(text).startswith(self.temporary):
                return
        self.say("network", ascii(address)[:100], "")

    def _greet(self) -> None:
        self._write("watched", sys.executable or "", str(os.getpid()))

    def say(self, how: str, path: str, name: str) -> None:
        """Write down an event, once."""
        key = (how, path, name)
        if key not in self._seen:
            self._seen[key] = None
            self._write(how, path, name)

    def _write(self, how: str, path: str, name: str) -> None:
        """Opened each time: the benchmark may close descriptors, count them, or fork.

        What can't be written (its folder was removed, the disk is full) waits for the next time:
        that is no error of the user's code, which may be in the middle of an import.
        """
        late, self._late = self._late, []
        lines = b"".join((*late, os.fsencode(_BETWEEN.join((how, path, name)) + _END)))
        try:
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                lines = lines[os.write(descriptor, lines) :]
            finally:
                os.close(descriptor)
        except OSError as error:
            self._why_late = error.strerror or str(error)
        if lines:
            self._late.append(lines)

    def unwritten(self) -> str:
        """Return why not all that was found is written down, or nothing."""
        return self._why_late if self._late else ""


class OwnCodeFirst:
    """A finder that looks in the side's own folders first, whatever else is on ``meta_path``.

    Editable installs put finders of theirs before Python's, which answer with the user's checkout.
    What only the checkout or another tree has isn't there for this side: such an answer is written
    down and refused.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the module, or None where others are to be asked."""
        found: ModuleSpec | None = self._watch.looking_itself(self._find, name, path, target)
        return found

    def _find(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        watch = self._watch
        if path is None:
            if name in sys.builtin_module_names or name in watch.installed:
                return None
            entries = self._own_path()
        else:
            entries = [one for one in path if isinstance(one, str) and self._is_own(one)]
            if not entries:
                return None
        spec = self._of_both(name, entries, target) or PathFinder.find_spec(name, entries, target)
        if spec is not None and spec.origin is not None:
            watch.looked_for(spec.origin)  # who only looks for a module imports none
            return spec
        other = self._asked(name, path, target)
        if other is None and spec is None:
            self._missed(name, path, entries)
        if spec is None or spec.submodule_search_locations is None:
            return self._not_strange(name, other)
        # A folder without `__init__.py`: a package of that name goes before it, as in Python.
        if other is not None and other.origin is not None and not self._is_strange(other.origin):
            return other
        places = [*spec.submodule_search_locations]
        if other is not None and other.submodule_search_locations is not None:
            more = other.submodule_search_locations
            places += [one for one in more if one not in places and not self._is_strange(one)]
        return _namespace(name, places)

    def _of_both(
        self, name: str, entries: Sequence[str], target: ModuleType | None
    ) -> ModuleSpec | None:
        """Return head's helper of the benchmarks in place of this side's own: both run head's."""
        if not self._watch.benchmarks:
            return None
        own, heads, folder = self._watch.benchmarks
        # an archive is opened to look for a name in it: head's is none of this side's business
        real = (f"{os.path.realpath(one)}/" for one in entries if os.path.isdir(one))
        theirs = [heads + one.removeprefix(own) for one in real if one.startswith(own)]
        spec = PathFinder.find_spec(name, theirs, target)
        places = (spec.origin, *(spec.submodule_search_locations or ())) if spec else ()
        inside = any(f"{one}/".startswith(heads + folder) for one in places if one)
        return spec if inside else None

    def _own_path(self) -> list[str]:
        """Return what of ``sys.path`` is this side's: its folders in their order, and all of them.

        A child begins with the current folder, which is the tree's root: it must not hide what
        a folder before it has built.
        """
        folders = self._watch.folders
        found: list[str] = []
        for entry in (one for one in sys.path if isinstance(one, str) and self._is_own(one)):
            found += folders if os.path.realpath(entry) in folders else (entry,)
        return list(dict.fromkeys((*found, *folders)))

    def _asked(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        """Return what the finders after this one answer."""
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                return spec
        return None

    def _missed(self, name: str, path: Sequence[str] | None, entries: Sequence[str]) -> None:
        """Write down what nobody has: a name of the tree's, and what the checkout has compiled."""
        if path is not None or name in self._watch.names:
            self._watch.say("missing", "", name)
        leaf = name.rpartition(".")[2]
        for entry in entries:
            for own in self._watch.own:
                inside = f"{os.path.realpath(entry)}/"
                if own.endswith("/") and inside.startswith(own):
                    below = f"{inside.removeprefix(own)}{leaf}"
                    for suffix in EXTENSION_SUFFIXES:
                        for there in (f"{one}{below}{suffix}" for one in self._watch.checkout):
                            if os.path.isfile(there):
                                self._watch.note("kept out", there, name)

    def _not_strange(self, name: str, spec: ModuleSpec | None) -> ModuleSpec | None:
        if spec is None:
            return None
        if isinstance(spec.origin, str) and self._is_strange(spec.origin):
            self._refuse(name, spec.origin)
        if spec.origin is None and spec.submodule_search_locations is not None:
            places = list(spec.submodule_search_locations)
            left = [one for one in places if not self._is_strange(one)]
            if not left and places:
                self._refuse(name, places[0])
            return spec if left == places else _namespace(name, left)
        return spec

    def _refuse(self, name: str, path: str) -> None:
        self._watch.note("kept out", path, name)
        raise ModuleNotFoundError(
            f"No module named {name!r} in the tree that is measured "
            f"(perfci keeps {path} out, which isn't its code)",
            name=name,
        )

    def _is_own(self, entry: str) -> bool:
        return f"{os.path.realpath(entry)}/".startswith(self._watch.own)

    def _is_strange(self, path: str) -> bool:
        return self._watch.place(self._watch.real(path) + ("/" if os.path.isdir(path) else "")) in {
            "strange",
            "checkout",
        }


def begin_in_child() -> None:
    """Watch this process, where a worker started it."""
    text = os.environ.get(VARIABLE)
    if text:
        import atexit

        watch = Watch(text, in_child=True)
        watch.install()
        atexit.register(watch.look)


def begin_in_worker(environment: Mapping[str, str]) -> Watch | None:
    """Watch this worker, and see to it that its children do; None where nobody asked for it."""
    text = environment.get(VARIABLE)
    if not text:
        return None
    watch = Watch(text, in_child=False)
    passed = os.environ.get("PYTHONPATH")
    folders = (HOOK, *watch.folders, *([passed] if passed else []))
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)
    sys.path.insert(0, HOOK)  # some hand their children this one: Inductor does
    watch.install()
    return watch


def encoded(settings: Mapping[str, Sequence[str]]) -> str:
    """Return settings as a variable's text. No path has these characters, nor a NUL."""
    return _ENTRY.join(_BETWEEN.join((name, *values)) for name, values in settings.items())


def decoded_events(text: bytes) -> list[list[str]]:
    """Return what is written in a file of events: ``how``, ``path`` and ``name`` of each."""
    return [line.split(_BETWEEN) for line in os.fsdecode(text).split(_END) if line]


def _decoded(text: str) -> dict[str, tuple[str, ...]]:
    entries = (entry.split(_BETWEEN) for entry in text.split(_ENTRY))
    return {name: tuple(values) for name, *values in entries}


def _path_of(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}")


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder or "/")
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _files_of(names: Mapping[str, Any]) -> Iterator[str]:
    spec = names.get("__spec__")
    origin = getattr(spec, "origin", None)
    for path in (names.get("__file__"), origin, getattr(names.get("__loader__"), "archive", None)):
        if isinstance(path, str) and path.startswith("/"):
            yield path


def _namespace(name: str, places: list[str]) -> ModuleSpec:
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = places
    return spec


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
        except OSError:  # it has ended, or this kernel lists no children
            continue
