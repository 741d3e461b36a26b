"""Lines to texts: what is taken, and the exact reason for what is not."""

from __future__ import annotations

import pytest

from megawrap.preprocess.documents import parse


def test_lines_become_documents():
    data = '{"text": "a"}\r\n\n  \t\r\n{"text": ["b", "", "c"]}\n{"x": NaN, "text": "é"}\n{"text": []}'.encode()
    documents = parse(data, ["text"])
    (texts,) = documents.keys
    assert texts.texts == ["a", "b", "", "c", "é"]
    assert texts.counts == [1, 3, 1, 0]
    assert documents.offsets == [0, 21, 46, 71]
    assert documents.lines == [0, 3, 4, 5]
    assert (documents.blank, documents.bad) == (2, [])
    assert [texts.document_of(index) for index in range(5)] == [0, 1, 1, 1, 2]


def test_a_line_has_to_be_right_under_all_keys():
    rows = [b'{"a": "1", "b": ["2", "3"]}', b'{"a": "4", "b": 5}', b'{"b": "6"}', b'{"b": "7", "a": []}']
    documents = parse(b"\n".join(rows), ["a", "b"])
    assert [(texts.texts, texts.counts) for texts in documents.keys] == [(["1"], [1, 0]), (["2", "3", "7"], [2, 1])]
    assert documents.lines == [0, 3]
    assert [(bad.number, bad.offset, bad.kind) for bad in documents.bad] == [
        (1, 28, "not a string"),
        (2, 47, "no such key"),
    ]


def test_documents_can_be_taken_out_again():
    documents = parse(b'{"a": ["1", "2"]}\n{"a": "3"}\nbroken\n{"a": "4"}\n', ["a"])
    left = documents.without({1: ("why", "because")})
    assert (left.keys[0].texts, left.keys[0].counts) == (["1", "2", "4"], [2, 1])
    assert (left.lines, left.offsets) == ([0, 3], [0, 36])
    assert [(bad.number, bad.offset, bad.kind) for bad in left.bad] == [(1, 18, "why"), (2, 29, "not valid JSON")]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (rb'{"text": "first", "text": "last"}', "last"),
        (rb'{"text": "\ud83d\ude80 \u0000"}', "\U0001f680 \x00"),
        (rb'{"other": "\ud800", "text": "x"}', "x"),
        (b'{"big": 1e999, "minus": -Infinity, "text": "x"}', "x"),
        (b'{"huge": 123456789012345678901234567890, "text": "x"}', "x"),
        ('{"text": "a\u2028b\x85c"}'.encode(), "a\u2028b\x85c"),
    ],
)
def test_all_that_python_reads_is_read(line, text):
    assert parse(line, ["text"]).keys[0].texts == [text]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "x"', "not valid JSON: Expecting ',' delimiter at column 13"),
        (b'{"text": "x"} {"text": "y"}', "not valid JSON: Extra data at column 15"),
        (b'{"text": "a\tb"}', "not valid JSON: Invalid control character at at column 12"),
        (b'\xef\xbb\xbf{"text": "x"}', "not valid JSON: Unexpected UTF-8 BOM (decode using utf-8-sig) at column 1"),
        (b'{"text": "\xff"}', "not valid UTF-8: byte 0xff at byte 10 of the line"),
        (b'{"text": "\xed\xa0\x80"}', "not valid UTF-8: byte 0xed at byte 10 of the line"),
        (b"hello", "not valid JSON: Expecting value at column 1"),
        (b'["x"]', 'an object with the key "text" is needed, and this is a list'),
        (b'"x"', 'an object with the key "text" is needed, and this is a string'),
        (b"3", 'an object with the key "text" is needed, and this is a number'),
        (b"NaN", 'an object with the key "text" is needed, and this is a number'),
        (b"{}", 'there is no key "text"; the object is empty'),
        ('{"Text": "x", "größe": 1}'.encode(), 'there is no key "text"; this line has "Text", "größe"'),
        (
            b'{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}',
            'there is no key "text"; this line has "a", "b", "c", "d", "e" and 2 more',
        ),
        (b'{"text": null}', '"text" is null, and a string or a list of strings is needed'),
        (b'{"text": 1}', '"text" is a number, and a string or a list of strings is needed'),
        (b'{"text": true}', '"text" is a boolean, and a string or a list of strings is needed'),
        (b'{"text": {"en": "x"}}', '"text" is an object, and a string or a list of strings is needed'),
        (b'{"text": ["x", null]}', '"text" is a list that holds null, and only strings can be tokenized'),
        (b'{"text": "\\ud800x"}', '"text" holds \\ud800, half of a surrogate pair, which is no character'),
        (b"[" * 200_000, "not usable JSON: it is nested too deeply"),
    ],
)
def test_a_bad_line_is_told_with_its_place_and_reason(line, reason):
    documents = parse(b'{"text": "fine"}\n\n' + line + b'\n{"text": "fine"}\n', ["text"])
    assert [(bad.number, bad.offset, bad.reason) for bad in documents.bad] == [(2, 18, reason)]
    assert documents.keys[0].texts == ["fine", "fine"]
