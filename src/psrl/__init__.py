"""MPC-PSRL."""

from psrl.tasks import register_all

register_all()
