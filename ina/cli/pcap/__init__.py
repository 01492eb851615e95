"""``ina pcap``: its app is in ``command``."""
