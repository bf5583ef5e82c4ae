"""The directive ``command-help``: what ``halfseen COMMAND --help`` prints, at the time of the build."""

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from halfseen.cli import app as halfseen_app

WIDTH = 76  # characters, the most that a page shows without scrolling


class CommandHelp(SphinxDirective):
    """A section for each command, with its help as text."""

    def run(self):
        """Ask the command line itself, so that no page can fall behind it."""
        group = typer.main.get_command(halfseen_app)
        context = typer.Context(group, info_name="halfseen", terminal_width=WIDTH)
        sections = [self._section("halfseen", group, context)]
        for name, command in group.commands.items():
            inner = typer.Context(
                command,
                parent=context,
                info_name=name,
                terminal_width=WIDTH,
                max_content_width=WIDTH,
            )
            sections.append(self._section(f"halfseen {name}", command, inner))
        return sections

    def _section(self, title, command, context):
        section = nodes.section(ids=[nodes.make_id(title)])
        section += nodes.title(text=title)
        command.rich_markup_mode = None  # plain text: frames and colours are for terminals
        for parameter in command.params:
            parameter.rich_help_panel = None
        text = command.get_help(context)
        block = nodes.literal_block(text, text, language="text")
        section += block
        self.state.document.note_implicit_target(section, section)
        return section


def setup(app):
    """Make the directive known to Sphinx."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
