"""Pages of the site that are made from declarations, as Markdown; `python -m tools.site` writes them."""
