"""Machines of their own kernel, in QEMU without KVM: where tests need drivers that this machine's
kernel has not. Nothing is installed: the kernel's package is unpacked to the build folder."""
