#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""README.md and docs/: every command works, every link leads somewhere, the picture is what `mlo show` draws.

    python tests/test_pages.py path/to/mlo [CHECK ...]     (readme, stages, faq, .., links, picture)

A block `console` is run and what it says compared; `sh` must succeed; `c` must compile; `python` must run, `json` parse. A page's blocks are run in turn, in one folder
as a reader has it after `make`, where `../` of docs/ is that folder. Commands that need the whole repository (its Makefile, a test) are run in it; what takes long or
installs (`make ..`, `sh tools/..`) is asked with -n whether it is there (test_package runs tools/install.sh)."""
import glob, json, os, re, shutil, subprocess, sys
import harness as t
from harness import at, case

PAGES = ["README.md", *sorted(os.path.relpath(p, t.root) for p in glob.glob(os.path.join(t.root, "docs", "*.md")))]


def page(name): return t.read(os.path.join(t.root, name)).decode()


def workshop():
    """A folder as a reader has it after `make`: mlo on the PATH, examples/, the library."""
    folder = at("workshop")
    if not os.path.exists(folder):
        os.makedirs(folder + "/bin")
        shutil.copytree(os.path.join(t.root, "examples"), folder + "/examples")
        shutil.copytree(os.path.join(t.root, "tests/models"), folder + "/tests/models")
        for f in (os.path.join(t.root, "mlo.h"), t.amalgamation()): shutil.copy(f, folder)
        os.symlink(t.mlo, folder + "/bin/mlo")
        os.symlink(t.mlo, folder + "/mlo")
    return folder


def shell(command, where=None, timeout=900):
    env = dict(os.environ, PATH=workshop() + "/bin:" + os.path.dirname(sys.executable) + ":" + os.environ["PATH"], LC_ALL="C.UTF-8", COLUMNS="150")
    return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", command], cwd=where or workshop(), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)


def plain(text):
    """Without what differs from run to run: seconds, blanks at line ends."""
    return [re.sub(r"\d+(\.\d+)? (ms|s)\b", "# s", l.rstrip()) for l in text.strip("\n").splitlines()]


def alike(got, want):
    """Whether lines equal those of the page, where a line `...` stands for any number of them."""
    pattern = r"\n".join(r"(?:.*\n?)*?" if l.strip() == "..." else re.escape(l) for l in want)
    return re.fullmatch(pattern, "\n".join(got)) is not None


def of_repository(command): return re.match(r"make (?!-C)|make$|python tests/|grep .*src/|sh tools/", command)


def sh(name, text):
    """A block's lines; those of the repository one by one."""
    mine = [l for l in text.splitlines() if of_repository(l)]
    for l in mine:
        p = shell(re.sub(r"^sh ", "sh -n ", re.sub(r"\b(sudo )?make\b", "make -n", l)) + (" > /dev/null" if l.startswith("make") else ""), t.root)
        case(f"{name}: {l[:60]}", "" if p.returncode == 0 else f"status {p.returncode}: {p.stdout[-300:]}")
    rest = "\n".join(l for l in text.splitlines() if not of_repository(l))
    if not rest: return
    p = shell(rest)
    case(f"{name}: {rest.splitlines()[0][:60]}", "" if p.returncode == 0 else f"status {p.returncode}: {p.stdout[-300:]}")


def console(name, text):
    for step in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, want = step.partition("\n")
        p = shell(command)
        difference = next(((g, w) for g, w in zip(plain(p.stdout) + [None], plain(want) + [None]) if g != w), ("", ""))
        case(f"{name}: {command[:60]}", "" if alike(plain(p.stdout), plain(want)) else f"says {difference[0]!r} and not {difference[1]!r}")


def package():
    """Where the Python package finds itself, the library and the program, as words of a shell in front of a command."""
    library = at("libmlo.so")
    why = "" if os.path.exists(library) else t.compile_c(library, [t.amalgamation()], ["-std=c99", "-O0", "-fPIC", "-shared"])
    if why: raise RuntimeError(why)
    return "PYTHONPATH=%s MLO_LIBRARY=%s MLO_PROGRAM=%s " % (os.path.join(t.root, "python"), library, t.mlo)


def python(name, text):
    """What imports torch runs where there is one (it need not be in the environment of the tests); elsewhere it is only read."""
    if "import torch" in text and subprocess.run([sys.executable, "-c", "import torch, transformers"], capture_output=True).returncode:
        compile(text, name, "exec")
        return case(f"{name}, read")
    p = shell((package() if "import mlo_compiler" in text else "") + "python3 - <<'END_OF_BLOCK'\n" + text + "\nEND_OF_BLOCK")
    case(name, "" if p.returncode == 0 else p.stdout[-300:] or "it says nothing")


def blocks_of(name):
    text = page(name)
    # (test_web runs those of JavaScript, where it has the package)
    blocks = [(m.group(1), m.group(2), text[:m.start()].count("\n") + 2) for m in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)]
    for kind, body, line in blocks:
        where = f"{name} line {line}"
        if kind == "sh": sh(where, body)
        elif kind == "console": console(where, body)
        elif kind == "python": python(where, body)
        elif kind == "c": case(where, t.compile_c(at("page-c"), [t.write("page.c", body), t.amalgamation()], [*t.STRICT, "-O0"]))
        elif kind == "json": json.loads(body); case(where)
        elif kind not in ("text", "js"): case(where, f"what is a block of {kind!r}?")
    case(f"{name} has blocks", "" if sum(kind in ("sh", "console") for kind, _, _ in blocks) >= LEAST[name] else f"{len(blocks)}")


# at least so many blocks of commands
LEAST = {"README.md": 4, "docs/stages.md": 11, "docs/build-directory.md": 4, "docs/board.md": 3, "docs/numbers.md": 2, "docs/faq.md": 17, "docs/python.md": 1, "docs/javascript.md": 0, "docs/kernel.md": 1, "docs/CONTRIBUTING.md": 2}
tools = ("iverilog", "verilator", "jq", "make", "yosys")


LONG = ("stages", "directory", "board", "faq", "python", "contributing")       # half of them a day, and what the command line asks for


def run_blocks(check, *names):
    """The blocks of pages, if their day has come."""
    if check in LONG and not t.due(check, LONG, 2) or not t.have(", ".join(names), *tools): return
    for name in names: blocks_of(name)


def check_readme(): run_blocks("readme", "README.md")
def check_stages(): run_blocks("stages", "docs/stages.md")
def check_directory(): run_blocks("directory", "docs/build-directory.md")
def check_board(): run_blocks("board", "docs/board.md")
def check_numbers(): run_blocks("numbers", "docs/numbers.md")
def check_faq(): run_blocks("faq", "docs/faq.md")
def check_python(): run_blocks("python", "docs/python.md", "docs/javascript.md")
def check_contributing(): run_blocks("contributing", "docs/kernel.md", "docs/CONTRIBUTING.md")


def anchors(text): return {re.sub(r"[^\w -]", "", h.lower()).strip().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)}


def check_links():
    """Files and headings that pages point to; README.md points to every page."""
    case("every page is known here", " ".join(set(PAGES) ^ set(LEAST)))
    for name in PAGES:
        lost = []
        for link in re.findall(r"(?:\]\(|src=\")(?!http)([^)\"]+)", page(name)):
            file, _, heading = link.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(name), file)) if file else name
            if not os.path.exists(os.path.join(t.root, path)): lost.append(link)
            elif heading and heading not in anchors(page(path)): lost.append(link)
        case(f"{name}: links lead somewhere", ", ".join(lost))
    case("README.md leads to every page", " ".join(p for p in PAGES[1:] if f"({p})" not in page("README.md")))
    case("thirty questions", "" if len(re.findall(r"^\*\*\d+\. ", page("docs/faq.md"), re.M)) >= 30 else "fewer")
    case("README.md is short", "" if len(re.sub(r"<!-- families: .*?<!-- families end -->", "", page("README.md"), flags=re.S).split()) < 2000 else "depth belongs into docs/")


def check_picture():
    """docs/layer.svg is what the README says it is."""
    drawn = t.good("show", "--svg", input=t.good("lower", os.path.join(t.root, "examples/bert-tiny.onnx")))
    case("docs/layer.svg", "" if drawn == t.read(os.path.join(t.root, "docs/layer.svg")) else "mlo lower examples/bert-tiny.onnx | mlo show --svg -o docs/layer.svg")


if __name__ == "__main__":
    t.main(check_readme, check_stages, check_directory, check_board, check_numbers, check_faq, check_python, check_contributing, check_links, check_picture, floor=44)
