"""The page's style sheet: light, dark (as the reader's system is set) and print. No fonts or images are loaded."""

from distgnn.system.plots import LIGHT

DARK = {
    "bg": "#14181d", "ink": "#e4e9ee", "soft": "#a3aeb9", "rule": "#37414c", "panel": "#1c2229", "accent": "#6cb6ff",
    "warn": "#ffc878", "warnbg": "#33270f", "c0": "#6cb6ff", "c1": "#ff9f5a", "c2": "#5dd38c", "c3": "#c9a3ff",
    "c4": "#ff8fb8", "c5": "#4fd1dd", "c6": "#e6c15c", "c7": "#a8b3c2", "p0": "#4a8fd6", "p1": "#5d6873",
    "p2": "#dfb64a", "p3": "#b57fc0", "p4": "#f2a79f", "stripe": "#7d1f14", "cell": "#6cb6ff", "on": "#10151a",
}  # fmt: skip

RULES = """
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1.25rem 4rem;max-width:1080px;background:var(--bg);color:var(--ink);
 font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.75rem;line-height:1.2;margin:.2rem 0 .4rem}
h2{font-size:1.3rem;margin:2.6rem 0 .3rem;padding-top:.7rem;border-top:2px solid var(--rule)}
h3{font-size:1.05rem;margin:1.7rem 0 .5rem}
h4{font-size:.95rem;margin:0 0 .3rem}
p{margin:.3rem 0 .9rem;max-width:46rem;color:var(--soft)}
a{color:var(--accent)}
nav{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:.8rem 0}
h1,h2,h3,h4,dd,dt,span,li{overflow-wrap:anywhere}td,th{overflow-wrap:break-word}
.wide{overflow-x:auto;margin:.5rem 0 1rem}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .8rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule);min-width:5.5rem}
thead th{border-bottom:2px solid var(--rule);vertical-align:bottom}
tbody th{font-weight:500;color:var(--soft);min-width:9rem}
td.n,th.n{text-align:right}td.n{white-space:nowrap}
.words td.n{white-space:normal;max-width:16rem;overflow-wrap:anywhere}
.differences td.n{font-weight:600}
.words td.n,.words th.n{text-align:left}
.facts{display:grid;grid-template-columns:minmax(9rem,max-content) 1fr;gap:.2rem 1.2rem;
 margin:.4rem 0 1rem;font-size:.9rem}
dt{color:var(--soft)}dd{margin:0}
figure{margin:.6rem 0 1.4rem;padding:.9rem 1rem;background:var(--panel);border-radius:8px;break-inside:avoid}
figcaption{color:var(--soft);font-size:.84rem;margin-top:.5rem}
.row{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(400px,100%),1fr));gap:0 1.1rem;align-items:stretch}
svg{display:block;width:100%;height:auto;overflow:visible}
svg *{stroke-linejoin:round;font-family:inherit;font-variant-numeric:tabular-nums}
.notice{border-left:4px solid var(--warn);background:var(--warnbg);color:var(--warn);padding:.5rem .9rem;margin:.6rem 0;
 border-radius:0 6px 6px 0}
.notice ul{margin:.1rem 0;padding-left:1.1rem}
details .facts{grid-template-columns:repeat(2,minmax(7rem,max-content) 1fr)}
details{margin:.4rem 0}summary{cursor:pointer;color:var(--accent)}
footer{margin-top:3rem;border-top:1px solid var(--rule);padding-top:.6rem;font-size:.84rem;color:var(--soft)}
"""

PRINT = """
@page{margin:13mm}
@media print{
:root{font-size:9.5pt}body{max-width:none;padding:0;font-size:1rem}nav{display:none}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
h2,h3,h4{break-after:avoid}tr{break-inside:avoid}.wide{overflow:visible}table{font-size:.85rem}
th,td{padding:.2rem .45rem;min-width:0}
figure{background:none;border:1px solid var(--rule);padding:.5rem .7rem;margin:.4rem 0 .8rem}
.row{grid-template-columns:1fr 1fr}
details::details-content{content-visibility:visible;display:block}
summary{list-style:none;color:var(--ink)}
}
"""


def style_sheet() -> str:
    light, dark = ("".join(f"--{name}:{colour};" for name, colour in of.items()) for of in (LIGHT, DARK))
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return f":root{{color-scheme:light dark;{light}}}{dark}{RULES}{PRINT}"
