"""What the fork server imports before it forks a controller."""

import ina.cli.controller
import ina.controller.app  # noqa: F401
