"""Mutations of the text of a scenario file, byte by byte and line by line."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

__all__ = ["mutate_text"]


def mutate_text(text: str, other: str, rng: Random) -> bytes:
    """Return a text with one to four mutations.

    Args:
        text: What is mutated.
        other: Another text, from which lines are taken.
        rng: Chooses the mutations.
    """
    content = text.encode()
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = rng.choice(_MUTATIONS)(content, other.encode(), rng)
    return content


def _flip_bits(content: bytes, other: bytes, rng: Random) -> bytes:
    changed = bytearray(content or b"x")
    for _ in range(rng.choice((1, 1, 2, 5))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _put_byte(content: bytes, other: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice(_INSERTED) + content[at + rng.choice((0, 0, 1, 3)) :]


def _drop_line(lines: list[bytes], other: list[bytes], rng: Random) -> None:
    del lines[rng.randrange(len(lines))]


def _double_line(lines: list[bytes], other: list[bytes], rng: Random) -> None:
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))


def _double_block(lines: list[bytes], other: list[bytes], rng: Random) -> None:
    begin = rng.randrange(len(lines))
    lines.extend(lines[begin : begin + rng.randrange(1, 20)])


def _swap_lines(lines: list[bytes], other: list[bytes], rng: Random) -> None:
    one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]


def _take_lines(lines: list[bytes], other: list[bytes], rng: Random) -> None:
    begin = rng.randrange(len(other))
    at = rng.randrange(len(lines) + 1)
    lines[at:at] = other[begin : begin + rng.randrange(1, 12)]


def _change_value(lines: list[bytes], other: list[bytes], rng: Random) -> None:
    """Put another value behind the last equals sign of a line."""
    at = rng.choice([i for i, line in enumerate(lines) if b"=" in line] or [0])
    key = lines[at].rpartition(b"=")[0] or b"x"
    lines[at] = key + b"= " + rng.choice(_VALUES)


def _nest(lines: list[bytes], other: list[bytes], rng: Random) -> None:
    depth = rng.choice((5, 30, 49, 51, 200, 5_000))
    lines.insert(
        rng.randrange(len(lines) + 1),
        rng.choice(
            (
                b"deep = " + b"[" * depth + b"]" * depth,
                b"deep = " + b"{a=" * depth + b"1" + b"}" * depth,
                b"[" + b".".join([b"a"] * depth) + b"]",
                b".".join([b"a"] * depth) + b" = 1",
                b"sweep." + b".".join([b"a"] * depth) + b" = [1, 2]",
            )
        ),
    )


def _many_lines(lines: list[bytes], other: list[bytes], rng: Random) -> None:
    count = rng.choice((100, 2_000, 20_000))
    lines += rng.choice(
        (
            [b"x%d = 1" % i for i in range(count)],
            [b"[optimizers.u%d]\nkind = 'uniform'" % i for i in range(count // 5)],
            [b"[[experts]]"] * count,
            [b"[a.b%d.c]" % i for i in range(count)],
            [b"many = [" + b"0.1," * count + b"]"],
            [b"[sweep]\n'rounds' = [" + b",".join(b"%d" % (i + 1) for i in range(count)) + b"]"],
        )
    )


def _of_lines(
    change: Callable[[list[bytes], list[bytes], Random], None],
) -> Callable[[bytes, bytes, Random], bytes]:
    def mutate(content: bytes, other: bytes, rng: Random) -> bytes:
        lines = content.split(b"\n")
        change(lines, other.split(b"\n"), rng)
        return b"\n".join(lines or [b""])

    return mutate


def _truncate(content: bytes, other: bytes, rng: Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _end_lines_otherwise(content: bytes, other: bytes, rng: Random) -> bytes:
    return content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\r", b"\x0b", b"\xe2\x80\xa8")))


def _mark_order(content: bytes, other: bytes, rng: Random) -> bytes:
    text = content.decode("utf-8", errors="replace")
    return rng.choice(
        (
            b"\xef\xbb\xbf" + content,
            b"\xef\xbb\xbf\xef\xbb\xbf" + content,
            text.encode("utf-16"),
            text.encode("utf-32"),
            text.encode("latin-1", errors="replace") + b"\xe9",
        )
    )


_MUTATIONS: list[Callable[[bytes, bytes, Random], bytes]] = [
    *(_flip_bits, _flip_bits, _put_byte, _put_byte, _truncate, _end_lines_otherwise, _mark_order),
    *map(_of_lines, (_drop_line, _drop_line, _double_line, _double_block, _swap_lines)),
    *map(_of_lines, (_take_lines, _take_lines, _change_value, _change_value, _change_value)),
    *map(_of_lines, (_nest, _many_lines)),
]

_INSERTED = (
    *(b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x7f", b"\x1b[2J", b"\r", b"\t", b"#"),
    *(
        "\N{ARABIC-INDIC DIGIT FIVE}".encode(),
        "\u202e".encode(),
        "\N{FULLWIDTH DIGIT ONE}".encode(),
    ),
    *(b'"', b"'", b'"""', b"'''", b"[", b"]", b"[[", b"]]", b"{", b"}", b"=", b".", b",", b"\\"),
    *(b"\\u0000", b"\\ud800", b"\\U00110000", b"-", b"+", b"e", b"_", b"0", b"99", b"\n", b" "),
)
_VALUES = (
    *(b"0", b"-0", b"-1", b"1e-300", b"5e-324", b"1e308", b"1e50", b"9.99e49", b"1e999", b"inf"),
    *(b"-inf", b"nan", b"+nan", b"0x7f", b"0xffffffffffffffffff", b"0o7", b"0b1", b"1_000"),
    *(
        b"9223372036854775807",
        b"-9223372036854775809",
        b"9" * 400,
        b"9" * 5000,
        b"0x" + b"f" * 4000,
    ),
    *(
        b'""',
        b"''",
        b'"' + b"a" * 100_000 + b'"',
        b"true",
        b"false",
        b"[]",
        b"{}",
        b"[[]]",
        b"[1,[2]]",
    ),
    *(
        b"2024-02-30",
        b"1979-05-27T07:32:00Z",
        b"07:32:00",
        b"1979-05-27",
        b"1e5",
        b"1.5",
        b"2",
        b"7",
    ),
    *(b'"os:system"', b'"../../etc/passwd"', b'"/dev/zero"', b'"inf"', b'"1"', b'["a", 1]'),
    *(b"[1,]", b"[,1]", b"{a=1,}", b"1 2", b"", b"'''x''", b'"\\x41"', b"\xc2\xbd"),
)
