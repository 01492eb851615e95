"""What the fork server imports before it forks a command ``ina ...``: what most of them load."""

import ina.cli.controller.command
import ina.cli.emulate
import ina.cli.fabric.command
import ina.cli.job.command
import ina.cli.sim.command
import ina.cli.switch.command
import ina.emulate.emulation
import ina.protocol.codec  # noqa: F401
