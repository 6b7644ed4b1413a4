"""``steward agent``: flags; the work is imported when it is called."""

from __future__ import annotations

import argparse

from steward.command import Command, Context


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``steward agent`` takes."""
    for name, variable, text in (
        ("host", "HOST", "address to listen on (default 127.0.0.1)"),
        ("port", "PORT", "port to listen on (default 9410; 0 takes a free one)"),
        ("interval-s", "SECONDS", "from one reading of the GPUs to the next (default 15)"),
        (
            "deadline-s",
            "SECONDS",
            "after which a GPU that does not answer is given up (default 1.5)",
        ),
        ("node", "NAME", "name of this node (default: $NODE_NAME, else the host name)"),
        ("pod-resources", "SOCKET", "the kubelet's PodResources socket"),
        ("proc", "FOLDER", "where the machine's /proc is (default /proc)"),
    ):
        parser.add_argument(
            f"--{name}",
            dest=f"agent.{name.replace('-', '_')}",
            metavar=variable,
            default=argparse.SUPPRESS,  # the settings know the default
            help=text,
        )


def run(_args: argparse.Namespace, context: Context) -> int:
    """Serve this machine's GPUs until stopped.

    Raises:
        SourceError: there is no NVIDIA driver, or it does not answer.
        MissingPartError: the optional part ``nvml`` is not installed.
        SettingsError: the deadline does not fit into the interval.
        PortInUseError: the port is taken.
    """
    from collector.agent.serve import serve  # noqa: PLC0415 - heavy: loaded only when it is called

    return serve(context)


AGENT = Command(
    name="agent",
    summary="Serve this node's GPUs and who holds them to Prometheus",
    add_arguments=add_arguments,
    run=run,
)
