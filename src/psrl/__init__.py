"""MPC-PSRL."""
