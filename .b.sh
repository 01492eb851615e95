#!/bin/bash
cd /opt/wt/speed; .venv/bin/python -m pip -q --disable-pip-version-check install --no-deps --no-build-isolation -C install.strip=false -C cmake.build-type=RelWithDebInfo -e . 2>&1 | grep -E "error|warning: |note:" | head -30
