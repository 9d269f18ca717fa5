"""A reader of HTML documents for the tests: it fails where an element is not closed."""

import re
from collections import Counter
from html.parser import HTMLParser

VOID = {"meta", "br"}
LOADS = {"src", "srcset", "data", "poster", "background", "action", "formaction", "xlink:href"}


class Page(HTMLParser):
    """What a document holds: ids, links, elements, and its text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.tags, self.loads, self.text = [], [], [], Counter(), [], ""
        self.headings = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags[tag] += 1
        assert not [name for name in given if name.startswith("on")]
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        self.loads += [given[name] for name in given if name in LOADS] + (["link"] if tag == "link" else [])
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += text
