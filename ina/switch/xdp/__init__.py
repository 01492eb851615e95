"""The XDP target: programs in the kernel of this machine."""
