"""What every page and plot shares: one style, one encoder of figures, one base of HTML pages.

`style` has colours and settings of matplotlib, `svg` turns figures into files and parts of
pages, `heat` has tables on coloured ground, `html` renders templates.
"""
