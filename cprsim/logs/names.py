"""Names of nodes: lists in every notation, and one name for each node of several spellings."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from os import PathLike
from shlex import quote

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError, one_line
from cprsim.failures.outages import Counted, Note
from cprsim.job.records import Bools
from cprsim.logs.files import trace_error
from cprsim.logs.slurm import MOST_NODES_OF_LIST, expanded, node_lists
from cprsim.logs.spec import UNKNOWN_WORDS

LEFT_OUT = "row(s) left out whose node is unknown, NULL, -, localhost or the like"
SEVERAL = r"[\[\]{}(),;|&+/:~…、=*?<>\\\s]|\.\.|\d[-–]"  # what a list of nodes has
UNUSUAL = r"[\s=<>\\]|^\d+(?:[-–+:/]|\.\.)\d|\d(?:[-–+:/~…、]|\.\.)\d+$"  # in a name
NO_NAME = r"[*?]|^\W*$|^\d+(?:[\s+]+\d+)+$|=|^\d+ \D+$|^\([^)]*$"  # n*, .., 4+3, a=b, 3 nodes, (0
NOT_KNOWN = r"(?:un|not? )(?:known|assigned)\b.*|(?:sub)?total(?: .*)?|sum"
NOT_SAID = {"localhost", "localhost.localdomain", "127.0.0.1", "::1", "0", "0.0.0.0"}
FEW, MUCH = 0.2, 0.1  # shares of names without a number, of their rows
PORT = r"(?<!127\.0\.0\.1)(?<!localhost):\d{4,5}$"
BRACKETS = re.compile(r"\[[^\[\]]*\]?")
SPAN = re.compile(r"(.*?\D)(\d+)\s*(?:-|–|~|…|\.\.|:| to )\s*\1(\d+)")  # gpu001-gpu003
SAME_OUTAGE_H = 5 / 60  # two sources report one outage within this
MOST_NAMES_SHOWN, LONGEST = 3, 200
MOSTLY, FEWEST_SUMMED = 0.5, 3


# ------------------------------------------------------------------------------------------- lists


def one_node_each(
    table: pd.DataFrame, column: str, path: PathLike[str], counted: Counted
) -> pd.DataFrame:
    """The rows whose cell in `column` names a node, those that name several once for each."""
    names = table[column].dropna().drop_duplicates()  # few, where rows are many
    plain = names.str.normalize("NFKC").str.strip()
    words = plain.str.lower().str.strip(" ()<>[]{}*?!.-–—")
    is_none = (words.isin(UNKNOWN_WORDS) | words.str.fullmatch(NOT_KNOWN)) & (plain != "")
    not_said = words.isin(NOT_SAID) | plain.str.match(r"#|-\d+$")  # a row that is a comment; -1
    others = plain[~not_said & ~is_none]
    if len(others) and others.str.contains(r"[^\W\d_]").all():  # no number is a name
        is_none |= not_said
    has_blank = others.str.contains(r"\s").astype(bool)
    usual = frozenset[str]().union(*map(_forms, others[~has_blank]))
    is_list = others.map(lambda name: bool(_forms(name) & usual) or _has_several(name, usual))
    bare = others[~others.str.contains(r"\d") | (has_blank & ~is_list.astype(bool))]  # 2x gpu
    is_bare = table[column].isin(names[bare.index]) & (len(bare) <= MOSTLY * len(others))
    if is_bare.any() and (sums := _sums(table, is_bare)).any():
        counted["no_failure", "row(s) that sum up those above"] += int(sums.sum())
        return one_node_each(table[~sums], column, path, counted)
    n, shown = int(is_bare.sum()), ", ".join(map(one_line, bare.iloc[:MOST_NAMES_SHOWN]))
    way = f"--ignore {one_line(quote(column + '=' + ','.join(bare)), LONGEST)} leaves them out"
    odd = f"row(s) of nodes without a number or with a blank, unlike the others: {shown} ({way})"
    if n > MUCH * len(table) and len(bare) <= FEW * len(others):
        raise trace_error(path, None, str(Note("inferred", n, odd)), column)
    counted["inferred", odd] += n
    none = table[column].isin(names[is_none])
    counted["dropped", LEFT_OUT] += int(none.sum())
    has_none = ~plain.str.replace(" ", "").str.contains(SEVERAL)
    known = frozenset[str]().union(*map(_forms, plain[has_none]))
    with_signs = Counter(form for name in plain[~has_none] for form in _forms(name))
    known |= {form for form, n in with_signs.items() if n > 1}  # 3:1, Rack 3, slot 1
    has_sign = plain.str.contains(SEVERAL) | plain.map(
        lambda name: _has_several(name, known)
    ).astype(bool)
    signed, table = names[has_sign & ~is_none], table[~none]
    nodes = node_lists(signed.str.strip(), path, lambda text: nodes_in(text, known))
    lists = {name: of for name, of in zip(signed, nodes, strict=True) if of != [name.strip()]}
    if not lists:
        return table
    cells = table[column].astype(object)
    several = cells.isin(list(lists))
    counted["assumed", "row(s) that name several nodes, an outage of each"] += int(several.sum())
    return table.assign(**{column: cells.where(~several, cells.map(lists))}).explode(column)


def _sums(table: pd.DataFrame, is_bare: pd.Series[bool]) -> Bools:
    """Which rows without a node have a number that is the sum of those above, and none of them."""
    numbers = table.apply(pd.to_numeric, errors="coerce").fillna(0.0)
    up_to = numbers.mask(is_bare, 0.0).cumsum()
    is_sum = np.isclose(numbers, up_to) & (numbers > numbers.mask(is_bare).cummax().ffill())
    return np.asarray(is_bare & is_sum.any(axis=1) & (np.arange(len(table)) >= FEWEST_SUMMED))


def nodes_in(text: str, known: frozenset[str] = frozenset()) -> list[str]:
    """The nodes that a cell names: ``n[1-3,7]``, ``a;b``, ``n1 n2``, ``['a', 'b']``, ``n{1..3}``.

    Blanks and the signs + / : separate nodes where the parts are alike, such as n1/n2. A part with
    a blank, such as node 1, is a node if it is `known`, or like all others. Raises ParameterError
    for bare numbers (4+3, n1,2), labels (a=b), and others with blanks, or a number after a sign
    (n1-3), that hold a `known` node, or several nodes (n1#n2).
    """
    plain = unicodedata.normalize("NFKC", text).strip().rstrip(",;").strip()
    if not re.sub(r"[\n\t]", ",", plain).isprintable():  # a name, whatever it is; no list
        return [text]
    if re.fullmatch(r"\(\d+(?:, ?\d+)+\)", plain) and not any(map(str.isdigit, known)):
        return [text.strip()]  # coordinates
    plain = re.sub(r"<([^<>]*)>", r"[\1]", plain).replace("{", "[").replace("}", "]")
    is_list = re.fullmatch(r"\[[^\[\]]*\]|\([^()]*\)", plain)
    if is_list:  # of Python, JSON, PostgreSQL
        plain = re.sub(r"['\"]", "", plain[1:-1]).strip().rstrip(",")
    plain = re.sub(r"(?<=[^\W\d])\((\d+[-–,.:][^()]*)\)", r"[\1]", plain)  # gpu(1-3)
    plain = BRACKETS.sub(lambda of: re.sub(r"(?<=\w)[\s;]+(?=\w)", ",", of[0]), plain)
    plain = BRACKETS.sub(lambda of: re.sub(r"\.\.|:", "-", of[0].replace(" ", "")), plain)
    names, no_list = list[str](), f"'{one_line(text)}' is no node, nor a list such as n1,n2"
    parts = re.split(r"\s*(?:[,;|&\n\t]|\s(?:and|und)\s)\s*(?![^\[\]]*\])", plain)
    are_alike = len(parts) > len({re.sub(r"\d+", "#", part) for part in parts}) == 1
    for part in parts:
        pieces = re.split(r"\s*[\s+/:]\s*", part)
        alike = {re.sub(r"\d+", "#", piece) for piece in pieces}
        if re.search(NO_NAME, part):
            raise ParameterError(no_list)
        if "[" in part or "]" in part:
            names += [name for piece in re.split(r"[\s+]+", part) for name in expanded(piece)]
        elif span := SPAN.fullmatch(part):
            names += expanded(f"{span[1]}[{span[2]}-{span[3]}]")
        elif len(pieces) > len(alike) == 1 and re.search(r"[^\W\d_].*#|#.*[^\W\d_]", alike.pop()):
            names += pieces
        elif _has_several(part, known):
            raise ParameterError(no_list)
        elif not (len(parts) > 1 and (are_alike or _forms(part) & known)) and re.search(
            UNUSUAL, re.sub(PORT, "", part)
        ):
            pieces = re.split(r"\W+", _bare(plain))
            holds_known = len(pieces) > 1 and any(_forms(piece) & known for piece in pieces)
            if holds_known or _has_several(plain, known):
                raise ParameterError(no_list)
            names = [text.strip()]  # "Rack 5, left"
            break
        else:
            names.append(part)
        if len(names) > MOST_NODES_OF_LIST:
            raise ParameterError(f"'{one_line(text)}' names more than {MOST_NODES_OF_LIST:,} nodes")
    if len({name.isdigit() for name in names}) > 1:
        raise ParameterError(no_list)
    if len(names) > 1 or is_list or "[" in plain:
        return names
    bare = _bare(plain)
    for sign in re.finditer(r"[^\w.-]+", "" if _forms(bare) & known else bare):  # 3:1/3:2, 3:1, 2
        more = bare[sign.end() :]
        if _forms(bare[: sign.start()]) & known and (more.isdigit() or _forms(more) & known):
            raise ParameterError(no_list)
    return [text.strip()]


def _has_several(name: str, known: frozenset[str]) -> bool:
    """Whether a name holds several known ones, or alike ones, whatever sign is between them."""
    low = _bare(name)
    levels = re.split(r"[^\w.-]+", low), re.findall(r"[a-z]+\d+|[^\W\da-z_]+\d+", low)
    if max(map(len, levels)) < 2:
        return False
    forms = [[_forms(part.strip("-.")) for part in parts] for parts in levels]
    alike = Counter(form for of in forms[0] for form in of if re.search(r"[^\W\d_].*#", form))
    is_known = (sum(not known.isdisjoint(of) for of in parts) > 1 for parts in forms)
    return max(alike.values(), default=0) > 1 or any(is_known)


# ------------------------------------------------------------------------------- several spellings


def spellings(rows: pd.DataFrame, more: Iterable[str], counted: Counted) -> dict[str, str]:
    """The name to use, by each of the other spellings of a node: GPU3, gpu3.site:9100, 3.0.

    `rows` are outages, or states from an instant on: node, start, end [h], perhaps state. Spellings
    that are down at one time, but neither begin nor end it together, are different nodes. Raises
    ParameterError for spellings that are in different states at one instant.
    """
    n_rows = {str(name): int(n) for name, n in rows["node"].value_counts().items()}
    groups = defaultdict[str, list[str]](list)
    for name in sorted({*n_rows, *more}, key=lambda one: (-n_rows.get(one, 0), len(one), one)):
        groups[_bare(name)].append(name)
    hosts = Counter(key.partition(".")[0] for key in groups)
    for key in list(groups):  # n1.site is n1, where that is there, and no other n1.*
        host, dot, _ = key.partition(".")
        if dot and host in groups and hosts[host] == 2 and re.search("[a-z]", host):
            groups[host] += groups.pop(key)
    keys = {form: key for key, forms in groups.items() for form in forms}
    for key, other in _sources(keys, rows):
        groups[key] += groups.pop(other)
    several = {forms[0]: forms for forms in groups.values() if len(forms) > 1}
    first = {form: name for name, forms in several.items() for form in forms}
    rows = rows[rows["node"].isin(list(first))]
    name_of_row = rows["node"].astype(object).map(first).to_numpy()
    apart = [str(name) for name, of in rows.groupby(name_of_row) if _are_different(of)]
    for words, names in (
        ("as one", several.keys() - set(apart)), ("as different nodes, as outages overlap", apart)
    ):  # fmt: skip
        shown = ", ".join(
            one_line(" = ".join(several[name])) for name in sorted(names)[:MOST_NAMES_SHOWN]
        )
        counted["assumed", f"node(s) of several spellings taken {words}: {shown}"] += len(names)
    return {form: name for form, name in first.items() if form != name and name not in apart}


def _forms(name: str) -> set[str]:
    """A bare name, and how names like it are built: gpu7, gpu#."""
    bare = _bare(name)
    return {bare, re.sub(r"\d+", "#", bare)} - {"#"}


def _bare(name: str) -> str:
    """A name without what its spellings differ by: capitals, scheme, port, hyphens, zeros."""
    low = unicodedata.normalize("NFKC", name).strip().strip("'\"").casefold()
    low = re.sub(r"^(?:[a-z]+://([^/]*).*|\w+@(.*\d.*))", r"\1\2", low).rstrip(".")
    low = re.sub(r"(?<=[a-z])[-_ ](?=\d)", "", re.sub(PORT, "", low))
    low = low.removesuffix(".0") if re.fullmatch(r"\d+\.0", low) else low
    return re.sub(r"(?<![\d.:])0+(?=\d)", "", low)


def _sources(keys: Mapping[str, str], rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Pairs of nodes that are one: alike (n1, node/n1, n1-bmc), and mostly down together.

    `keys` are the nodes by name. Numbers of alike names are equal, and letters within the others'.
    """
    host = {key: key.partition(".")[0] for key in keys.values()}
    host = {key: name if re.search("[a-z]", name) else key for key, name in host.items()}
    parts = {k: (re.findall(r"\d+", h), re.sub(r"[\W\d_]", "", h)) for k, h in host.items()}
    by_numbers = defaultdict[tuple[str, ...], list[str]](list)
    for key in sorted(parts, key=lambda one: (len(one), one)):
        by_numbers[tuple(parts[key][0])].append(key)
    first = {
        key: alike[0]
        for numbers, alike in by_numbers.items()
        for key in alike[1:]
        if numbers and parts[alike[0]][1] and parts[alike[0]][1] in parts[key][1]
    }
    if not first:
        return []
    of = rows["node"].astype(object).map(keys).astype(object)
    down = pd.DataFrame({"of": of, "start": rows["start"]})
    down = down.sort_values("start", kind="stable").assign(near_h=down["start"])
    others = down.rename(columns={"of": "key"})[["key", "start"]]
    others = others.assign(of=others["key"].map(first)).dropna().astype({"of": object})
    near = pd.merge_asof(others, down, on="start", by="of", direction="nearest")
    is_near = (near["near_h"] - near["start"]).abs() <= SAME_OUTAGE_H
    together = is_near.groupby(near["key"].map(lambda key: parts[key][1])).mean()
    return [(of, key) for key, of in first.items() if together.get(parts[key][1], 0) > MOSTLY]


def _are_different(rows: pd.DataFrame) -> bool:
    """Whether some outages of two spellings overlap without being the same one."""
    if "state" in rows:
        if (rows.groupby("start")["state"].nunique() > 1).any():
            names = ", ".join(map(one_line, rows["node"].astype(object).unique()))
            message = "are in different states at one instant: give them names that differ in more"
            raise ParameterError(f"{names} {message} than capitals, domain or port")
        return False
    rows = rows.sort_values("start", kind="stable")
    start_h, end_h = rows["start"].to_numpy(), rows["end"].fillna(rows["start"]).to_numpy()
    name = rows["node"].to_numpy()
    other = name[1:] != name[:-1]
    same = (np.diff(start_h) <= SAME_OUTAGE_H) | (np.abs(np.diff(end_h)) <= SAME_OUTAGE_H)
    return bool((other & ~same & (start_h[1:] < end_h[:-1])).any())
