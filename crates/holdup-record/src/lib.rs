//! Linux recorder of holdup: BPF CO-RE.
