"""Pure renderers of the site: HTML, Markdown, feeds and search data."""
