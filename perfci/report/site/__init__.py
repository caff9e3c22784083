"""An analysed history as a site, as Markdown and as lines. Pure: it writes nothing itself."""
