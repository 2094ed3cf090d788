# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""The changes of a line that tests/random_faults.py draws from: what a tired engineer writes, in C++, bash and Python."""
import functools
import re
from dataclasses import dataclass
from pathlib import Path

KINDS = ["comparison", "off by one", "constant", "dropped statement", "dropped call", "negated condition", "swapped arguments", "and/or",
         "error code", "dropped not", "break/continue", "early return"]

ERRORS = ["DataError", "UsageError", "ConfigError", "IoError", "MissingDataError", "DeviceError", "InternalError"]
CODES = ["kUsage", "kIo", "kDataDamaged", "kDataMissing", "kDeviceUnavailable", "kInternal", "kPeerLost", "kWrongRank"]
FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "!=", "!=": "==", "-lt": "-gt", "-gt": "-lt", "-le": "-ge", "-ge": "-le",
           "-eq": "-ne", "-ne": "-eq", "=": "!=", "=~": "!="}
BY_ONE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "-lt": "-le", "-le": "-lt", "-gt": "-ge", "-ge": "-gt"}
KEYWORDS = r"(?:if|for|while|switch|return|sizeof|catch|throw|alignof|decltype|noexcept|defined|and|or|not|in|elif|print|def|class|lambda)"
EITHER_ORDER = {"min", "max", "checked_sum", "checked_product", "gcd", "swap",  # calls that are the same with their arguments swapped
                "Add", "Mul", "And", "Or", "Xor", "Eq"}
NO_STATEMENT = re.compile(r"(?:if|for|while|do|else|switch|case|default|using|const|auto|static|constexpr|class|struct|enum|union|"
                          r"namespace|template|typedef|public|private|protected|inline|explicit|virtual|friend|extern|try|catch|goto)\b|\[\[|#|~")
DECLARATION = re.compile(r"(?!return\b|throw\b|delete\b|co_)(?:[\w:]+(?:<[^=;]*>)?[&*]*\s+)+[&*]*\w+\s*(?:=[^=]|;|\{|\[|\()")
PARAMETER = re.compile(r"(?:const )?[\w:]+(?:<.*>)?[ &*]+\w+(?: = .*)?$|\w+: |\w+=|self$|\*")


def is_cpp(path):
    return str(path).endswith((".cpp", ".hpp", ".cu", ".cuh"))


@functools.lru_cache(maxsize=None)
def language(path):
    """"bash", "python" or "" of a script."""
    if str(path).endswith(".py"):
        return "python"
    first = Path(path).read_text(encoding="utf-8", errors="replace").split("\n", 2)[:2]
    if first[0].startswith("#!"):
        return "python" if "python" in first[0] else "bash" if "sh" in first[0] else ""
    return "bash" if "shellcheck shell" in "".join(first) else ""


def masked(text, path):
    """The text with comments, strings and lines of the preprocessor blanked; of the same length."""
    if is_cpp(path):
        token = r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*(?:.|\n)*?\*/|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*'
    elif language(path) == "python":
        token = r'"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\#[^\n]*'
    else:
        token = r"(?<!\w)'[^']*'|(?:^|(?<=\s))\#[^\n]*|<<\s*'?(\w+)'?(?:.|\n)*?^\1$"
    return re.sub(token, lambda found: re.sub(r"[^\n]", " ", found[0]) if found[0][0] not in "\"'" else
                  found[0][0] + re.sub(r"[^\n]", "_", found[0][1:-1]) + found[0][-1], text, flags=re.M)


@dataclass
class Change:
    """Text[start:end] becomes `text`. forms: ways to plant it, (start, end, text), in a script the change itself."""
    kind: str
    start: int
    end: int
    text: str
    forms: list
    lines: range
    old: list
    new: list

    def name(self, path):
        return f"{path}:{self.lines[0] + 1}: {self.kind}: {' '.join(' '.join(self.old).split())[:60]} -> {' '.join(' '.join(self.new).split())[:60]}"

    def key(self, path):
        """As equivalents() has it."""
        return path, "\n".join(line.strip() for line in self.old), "\n".join(line.strip() for line in self.new)


class Source:
    """A product file and the changes that each of its lines allows."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.cpp = is_cpp(path)
        self.mask = masked(text, path if self.cpp else Path(__file__).resolve().parent.parent / path)
        self.python = not self.cpp and language(Path(__file__).resolve().parent.parent / path) == "python"
        self.starts = [0] + [found.end() for found in re.finditer("\n", text)]

    def line_of(self, position):
        return self.text.count("\n", 0, position)

    def code_lines(self):
        """Lines that hold code, not only brackets, declarations of names or what the preprocessor reads."""
        for number, line in enumerate(self.mask.split("\n")):
            if re.search(r"\w", re.sub(r'"_*"', "", line)) and not re.match(r"\s*(?:#|static_assert|using |namespace |import |from |public:|private:|protected:)", line):
                yield number

    # C++: places.

    def region(self, start, end, through_and=False):
        """The smallest argument, condition or value around a place."""
        mask, depth = self.mask, 0
        while start > 0:
            c, before = mask[start - 1], mask[:start][-2:]
            if c in ")]}":
                depth += 1
            elif c in "([{":
                if depth == 0:
                    break
                depth -= 1
            elif depth == 0 and (c in ",;?" or (c == ":" and "::" not in mask[start - 2:start + 1]) or (before in ("&&", "||") and not through_and) or
                                 (c == "=" and mask[start - 2] not in "=!<>" and mask[start] != "=") or re.search(r"\b(?:return|throw|else|do)$", mask[max(0, start - 7):start])):
                break
            start -= 1
        depth = 0
        while end < len(mask):
            c = mask[end]
            if c in "([{":
                if depth == 0 and c == "{" and mask[end - 1] == " ":
                    break
                depth += 1
            elif c in ")]}":
                if depth == 0:
                    break
                depth -= 1
            elif depth == 0 and (c in ",;?" or (c == ":" and "::" not in mask[end - 1:end + 2]) or (mask[end:end + 2] in ("&&", "||") and not through_and)):
                break
            end += 1
        while start < end and mask[start].isspace():
            start += 1
        while end > start and mask[end - 1].isspace():
            end -= 1
        return start, end

    def closing(self, opened):
        """The position of the bracket that closes the one at `opened`."""
        depth = 0
        for position in range(opened, len(self.mask)):
            depth += (self.mask[position] in "([{") - (self.mask[position] in ")]}")
            if depth == 0:
                return position
        return len(self.mask) - 1

    def statement(self, number):
        """(start, end) of the statement that begins on a line, also after its if; None: it is none that can go."""
        start = self.starts[number] + len(self.mask[self.starts[number]:]) - len(self.mask[self.starts[number]:].lstrip())
        if self.mask[:start].rstrip()[-1:] not in ("{", "}", ";") or start == self.starts[number]:
            return None
        while True:
            found = re.match(r"(?:\} )?(?:else )?(?:if|for|while) (?=\()|else ", self.mask[start:start + 20])
            if not found:
                break
            start += found.end()
            if self.mask[start] == "(":
                start = self.closing(start) + 1
                start += len(self.mask[start:]) - len(self.mask[start:].lstrip())
        end = start
        while end < len(self.mask) and self.mask[end] != ";":
            end = self.closing(end) + 1 if self.mask[end] in "([{" else end + 1
            if end <= len(self.mask) and self.mask[end - 1] == "}" and self.mask[end:end + 1] == "\n":
                return None
        piece = self.mask[start:end + 1]
        if not piece.strip() or NO_STATEMENT.match(piece) or DECLARATION.match(piece) or self.line_of(start) != number:
            return None
        return start, end + 1

    def is_last_return(self, start, end):
        """A return without which a function has no value."""
        after, line = self.mask[end:].lstrip(), self.mask[self.starts[self.line_of(start)]:start]
        return self.mask.startswith("return", start) and after[:1] == "}" and (len(line) <= 2 or line.strip()[-1:] in ("{", ")"))

    # Changes.

    def make(self, kind, start, end, text, spans=()):
        """A change of text[start:end]. spans: where the choice may be made in C++, (start, end), the smallest first."""
        first, last = self.line_of(start), self.line_of(max(start, end - 1))
        whole = self.text[self.starts[first]:self.end_of(last)].rstrip("\n")
        at = start - self.starts[first]
        new = whole[:at] + text + whole[at + end - start:]
        forms, lines = [(start, end, text)], range(first, last + 1)
        if self.cpp:
            forms = []
            for word in self.choices(first):
                for a, b in spans:
                    old = self.text[a:b]
                    changed = self.text[a:start] + text + self.text[end:b]
                    if "//" in self.mask[a:b] + text or re.search(r"//", old):
                        continue
                    if old.rstrip().endswith(";"):
                        planted = f"if ({word}) {{ {' '.join(changed.split(chr(10)))} }} else {{ {old} }}"
                    else:
                        truth = "!!" if kind == "dropped not" else ""  # `x ? y : !y` of an optional y is an optional, always true
                        planted = f"({word} ? {truth}({' '.join(changed.split(chr(10)))}) : ({old}))"
                    forms.append((a, b, planted))
                    lines = range(min(lines[0], self.line_of(a)), max(lines[-1], self.line_of(b - 1)) + 1)
        return Change(kind, start, end, text, forms, lines, whole.split("\n"), new.split("\n"))

    def in_constexpr(self, number):
        """True if a function around the line can be one that the compiler runs."""
        level = len(self.mask.split("\n")[number]) - len(self.mask.split("\n")[number].lstrip())
        for line in reversed(self.mask.split("\n")[:number]):
            here = len(line) - len(line.lstrip())
            if line.strip() and here < level and line.rstrip().endswith("{"):
                if re.search(r"\bconstexpr\b.*\(", line):
                    return True
                level = here
        return False

    def changes(self, number):
        """{kind: [Change]} that a line allows."""
        begin = self.starts[number]
        line = self.mask[begin:].split("\n", 1)[0]
        found = {}
        for change in self.of_cpp(number, begin, line) if self.cpp else self.of_script(number, begin, line):
            if change.forms and change.old != change.new:
                found.setdefault(change.kind, []).append(change)
        return found

    def words(self, pattern, line, begin):
        return [(begin + found.start(1), begin + found.end(1), found[1]) for found in re.finditer(pattern, line)]

    def numbers(self, line, begin):
        """Literals, each with what may stand in their place."""
        for start, end, word in self.words(r"(?<![\w.$\"])(\d+(?:\.\d+)?(?:e-?\d+)?[fuzUL]*)(?![\w.\"])", line, begin):
            digits = re.match(r"[\d.e-]+", word)[0].rstrip("e")
            tail = word[len(digits):]
            if re.fullmatch(r"\d+", digits):
                value = int(digits)
                yield "off by one", start, end, f"{value + 1}{tail}"
                if value > 0:
                    yield "off by one", start, end, f"{value - 1}{tail}"
                yield "constant", start, end, f"{value * 2 or 3}{tail}"
                if value > 1:
                    yield "constant", start, end, f"{value // 2}{tail}" if value > 3 else f"0{tail}"
            else:
                yield "constant", start, end, f"{float(digits) * 2 or 1.0!r}{tail}"

    def swaps(self, line, begin):
        """(start, end, text, start of the first argument) of calls with two neighbours the other way round."""
        for found in re.finditer(r"\b(?!" + KEYWORDS + r"\b)([A-Za-z_]\w*)(?:<[\w:]+>)?\(", line):
            if found[1] in EITHER_ORDER:
                continue
            opened = begin + found.end() - 1
            closed, at, cuts = self.closing(opened), opened + 1, []
            position = at
            while position < closed:
                if self.mask[position] in "([{":
                    position = self.closing(position)
                elif self.mask[position] == ",":
                    cuts.append((at, position))
                    at = position + 1
                position += 1
            cuts.append((at, closed))
            for (a, b), (c, d) in zip(cuts, cuts[1:]):
                first, second = self.text[a:b].strip(), self.text[c:d].strip()
                if first != second and not any(PARAMETER.match(one) for one in (first, second)):
                    gap = self.text[a:b].replace(first, "", 1)
                    yield a, d, gap + second + ", " + first, (a + len(gap), b, c + len(self.text[c:d]) - len(self.text[c:d].lstrip()), d), (first, second)

    def of_cpp(self, number, begin, line):
        statement = self.statement(number)
        whole = [statement] if statement else []
        for start, end, sign in self.words(r" (<=|>=|==|!=|<|>) ", line, begin):
            for kind, table in (("comparison", FLIPPED), ("off by one", BY_ONE)):
                if sign in table:
                    yield self.make(kind, start, end, table[sign], [self.region(start, end)] + whole)
        for kind, start, end, text in self.numbers(line, begin):
            yield self.make(kind, start, end, text, [(start, end)] + whole)
        for start, end, word in self.words(r"\b(true|false)\b", line, begin):
            yield self.make("constant", start, end, "false" if word == "true" else "true", [(start, end)] + whole)
        for start, end, sign in self.words(r" (&&|\|\|) ", line, begin):
            yield self.make("and/or", start, end, "||" if sign == "&&" else "&&", [self.region(start, end, True)] + whole)
        for start, end, _ in self.words(r"(?:[( ])(!)(?=[\w(])", line, begin):
            yield self.make("dropped not", start, end, "", [self.region(start, end)] + whole)
        for found in re.finditer(r"\b(?:if|while) \(", line):
            start = begin + found.end()
            end = self.closing(start - 1)
            start += (self.mask[start:end].rfind(";") + 1)
            yield self.make("negated condition", start, end, f" !({self.text[start:end].strip()})".lstrip(), [(start, end)])
        for start, end, text, (a, b, c, d), (first, second) in self.swaps(line, begin):
            swap = self.make("swapped arguments", start, end, text, [self.region(start - 2, end + 1)])
            if "//" not in first + second:
                word = "PLANTED_AT_RUN_TIME"
                swap.forms.append((a, d, f"({word} ? ({second}) : ({first})){self.text[b:c]}({word} ? ({first}) : ({second}))"))
            yield swap
        for start, end, name in self.words(r"\bthrow ([A-Za-z]+Error)\(", line, begin):
            for other in ERRORS:
                if name in ERRORS and other != name:
                    yield self.make("error code", start, end, other, [(start - len("throw "), self.closing(end) + 1)])
        for start, end, name in self.words(r"\bExitCode::(k\w+)", line, begin):
            for other in CODES:
                if other != name:
                    yield self.make("error code", start, end, other, [(start - len("ExitCode::"), end)])
        for start, end, word in self.words(r"\b(break|continue)(?=;)", line, begin):
            yield self.make("break/continue", start, end, "continue" if word == "break" else "break", [(start, end + 1)])
        if statement and not self.is_last_return(*statement):
            start, end = statement
            call = re.match(r"[\w:.>()\[\]*&-]*\w\(", self.mask[start:end]) and not re.match(r"return|throw", self.mask[start:end])
            dropped = self.make("dropped call" if call else "dropped statement", start, end, ";", [])
            dropped.forms = [(start, end, f"{{ if (!{word}) {{ {self.text[start:end]} }} }}") for word in self.choices(number)]
            dropped.lines = range(number, self.line_of(end - 1) + 1)
            yield dropped
        if line[:1] == " " and self.mask[:begin].rstrip()[-1:] in ("}", ";") and not re.match(r"\s*(?:[})]|(?:else|case|default)\b)", line):
            start = begin + len(line) - len(line.lstrip())
            early = self.make("early return", start, start, "return; ")
            early.forms = [(start, start, f"if (PLANTED_AT_RUN_TIME) {what} ") for what in self.returns(number)]
            yield early

    def choices(self, number):
        """The words for a choice that the compiler cannot make; in a constexpr function, one that it need not make."""
        return ["PLANTED_AT_RUN_TIME"] + (["PLANTED"] if self.in_constexpr(number) else [])

    def returns(self, number):
        """Ways to leave the function around a line, first the one that its own returns suggest."""
        around = re.split(r"\n\}", self.mask[:self.starts[number]])[-1] + re.split(r"\n\}", self.mask[self.starts[number]:])[0]
        return ["return {};", "return;"] if re.search(r"\breturn [^;]", around) else ["return;", "return {};"]

    def of_script(self, number, begin, line):
        stripped, indent = line.strip(), len(line) - len(line.lstrip())
        signs = r" (<=|>=|==|!=|<|>) " if self.python else r" (-lt|-le|-gt|-ge|-eq|-ne|!=|==|=) (?=.*\])|(?<=\(\().* (<=|>=|==|<|>) (?=.*\)\))"
        for found in re.finditer(signs, line):
            group = 1 if found[1] else 2
            start, end = begin + found.start(group), begin + found.end(group)
            for kind, table in (("comparison", FLIPPED), ("off by one", BY_ONE)):
                if found[group] in table:
                    yield self.make(kind, start, end, table[found[group]])
        for kind, start, end, text in self.numbers(line, begin):
            code = not self.python and re.search(r"\b(?:exit|die|return) $", self.mask[begin:start])
            yield self.make("error code" if code else kind, start, end, text)
        swap = {"and": "or", "or": "and", "&&": "||", "||": "&&", "True": "False", "False": "True", "break": "continue", "continue": "break"}
        for start, end, word in self.words(r"(?<![\w\"])(and|or|True|False|break|continue)(?![\w\"])" if self.python else r"(?<=\s)(&&|\|\||break|continue)(?=\s|;|$)", line, begin):
            kind = "break/continue" if word in ("break", "continue") else "constant" if word in ("True", "False") else "and/or"
            yield self.make(kind, start, end, swap[word])
        for start, end, _ in self.words(r"\b(not )(?!in\b)" if self.python else r"(?:\[|if|while|&&) (! )", line, begin):
            yield self.make("dropped not", start, end, "")
        found = re.match(r"\s*(?:if|elif|while) (.*):$" if self.python else r"\s*(?:if|elif|while) (.*); (?:then|do)$", line)
        if found:
            old = self.text[begin + found.start(1):begin + found.end(1)]
            yield self.make("negated condition", begin + found.start(1), begin + found.end(1), f"not ({old})" if self.python else f"! {{ {old}; }}")
        if self.python:
            for start, end, text, _, _ in self.swaps(line, begin):
                yield self.make("swapped arguments", start, end, text)
        else:
            for found in re.finditer(r'(?<=\s)("\$\w+"|"\$\{\w+\}") ("\$\w+"|"\$\{\w+\}")(?=\s|$)', line):
                if found[1] != found[2]:
                    yield self.make("swapped arguments", begin + found.start(), begin + found.end(), f"{found[2]} {found[1]}")
        head = r"(?:if|elif|else|for|while|def|class|with|try|except|finally|return|raise|import|from|pass|@|local|then|do|done|fi|case|esac|function|export|source|[})\]]|\w+\(\))"
        if indent and stripped and not re.match(head + r"(?!\w)", stripped) and not self.text[begin:].split("\n", 1)[0].rstrip().endswith(("\\", ",", "(", "[", "{", "|", "&&", "||", ";;")):
            start, end = begin + indent, begin + len(line.rstrip())
            call = re.match(r"[\w.]+\(" if self.python else r"[\w-]+(?:\s|$)", stripped) is not None
            yield self.make("dropped call" if call else "dropped statement", start, end, "pass" if self.python else ":")
            if self.mask[:begin].rstrip()[-1:] not in (",", "(", "[", "\\"):
                yield self.make("early return", start, start, "return" + (" 0" if not self.python else "") + "\n" + " " * indent)

    # The table.

    def with_form(self, change, form):
        """The text with the change planted; a constant that only the compiler knows becomes one of the run."""
        start, end, planted = form
        text = self.text[:start] + planted + self.text[end:]
        if self.cpp and "PLANTED_AT_RUN_TIME" in planted:
            first = self.starts[change.lines[0]]
            head = re.sub(r"\b(static |inline )?constexpr (?=[\w:<>\[\]* ]+ = )", lambda found: (found[1] or "") + "const ", self.text[first:start])
            text = self.text[:first] + head + planted + self.text[end:]
        return text

    def with_forms(self, planted):
        """The text with all those (change, form), whose rows have no line in common."""
        lines = self.text.split("\n")
        for change, form in sorted(planted, key=lambda one: -one[0].start):
            rows = self.row_lines(change)
            lines[rows[0]:rows[-1] + 1] = self.row(change, form)[1]
        return "\n".join(lines)

    def row_lines(self, change):
        """Numbers of the lines of a row: those that differ, and lines above until they stand there once."""
        first, end = change.lines[0], self.end_of(change.lines[-1])
        while first > 0 and self.text.count(self.text[self.starts[first]:end].rstrip("\n")) > 1:
            first -= 1
        return range(first, change.lines[-1] + 1)

    def end_of(self, number):
        return self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)

    def row(self, change, form):
        """(old, new) lines of a row."""
        new_text, begin, end = self.with_form(change, form), self.starts[self.row_lines(change)[0]], self.end_of(change.lines[-1])
        old, new = self.text[begin:end], new_text[begin:len(new_text) - (len(self.text) - end)]
        return old.rstrip("\n").split("\n"), new.rstrip("\n").split("\n")
