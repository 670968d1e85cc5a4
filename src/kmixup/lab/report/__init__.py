"""Reports: rows → frame → statistics → document → terminal, Markdown and HTML.

`frame` puts rows into a pandas DataFrame and into the cells of tables, `stats` has all statistics,
`comparisons` applies them to cells. `sweep`, `tune`, `compare` and `inspect` each build a
`Document`, which `render_text` and `render_html` write.
"""
