"""Jobs' windows: their algorithms, caps where jobs share, and what limits a job."""
