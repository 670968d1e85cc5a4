"""What every HTML page has to be."""

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Checker(HTMLParser):
    """Tags that close in order, ids that are told apart, and everything that is referred to."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs[name] for name in ("src", "href", "xlink:href") if name in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
