"""Texts that a spreadsheet reads as formulas, and names of files that tables cannot hold as they are."""

FORMULAS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "＝1",
    "＋1",
    "\nx",
    "-1.5 dB",
    "- a",
    "\u200b=1",
    "\ufeff=1",
    "\u00a0@x",
]
HIDDEN = {
    "\x1b=1+1": "' =1+1",
    "\x00\x07@SUM": "'  @SUM",
    "\u202e=1": "' =1",
    "a;\x1b=1": "a; '=1",
    "caf\udce9": r"caf\xe9",
}
ODD_NAMES = (
    *("=1+1.png", "@SUM(A1).png", "-2+3.png", "\x1b=2.png", " =3.png", "\t=4.png", "\n=5.png", "x;=6.png"),
    *("\u200b=7.png", " a.png", "\u00a0b.png", "c\u2028d.png", "\u202egnp.e", "f.png ", "caf\udce9.png"),
    *("\udcff\udcfe.png", "g\x01h.png", "it's.png", "'=8.png", r"i\j.png", 'k "l", m.png', "n\ro.png"),
    *("sub/=p.png", "=q/r.png", " s/ t.png"),
)
