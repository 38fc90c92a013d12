/* show, page: pieces of an HTML page: its style, escaped words, cards, rows of tables.
 *
 * invariant: no script, nothing from elsewhere; light and dark by the reader's choice; every name
 *     goes through mlo_html_words.
 * example: a cell that begins with '>' stands to the right.
 */

static const char *const mlo_html_style[] = {
    "<style>:root{--ink:#1c2733;--soft:#5c6b7a;--line:#d9e0e7;--page:#f4f6f8;--card:#fff;--wire:#"
    "7a8a99;--accent:#1f6feb;--hot:#c2410c;--io:#e8edf3;--mac:#cfe3fb;--table:#c4e8e4;--attention:#"
    "ffe0c2;--norm:#e6dcfa;--sum:#daf0d4;--move:#eef0f2;--loop:#fff0b3;--other:#f6f6f6}",
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa8b5;--line:#30393f;--page:#"
    "11161b;--card:#1a2127;--wire:#76848f;--accent:#6cb0ff;--hot:#ff9a62;--io:#2b353e;--mac:#"
    "1d4164;--table:#1b4a47;--attention:#5f3a1c;--norm:#3c3160;--sum:#264a2a;--move:#2a3036;--loop:"
    "#574613;--other:#262c31}}",
    "*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:14px/1.45 "
    "system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}main{max-width:1320px;margin:0 "
    "auto;padding:26px 22px 60px}",
    "h1{font-size:24px;margin:0 0 2px}h1.after{margin:28px 0 10px}h2{font-size:17px;margin:0 0 "
    "10px}h3{font-size:12px;margin:18px 0 "
    "6px;color:var(--soft);font-weight:600;letter-spacing:.05em;text-transform:uppercase}",
    "section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px "
    "20px;margin-top:18px}.quiet,.sub{color:var(--soft)}code,.n{font-family:ui-monospace,'DejaVu "
    "Sans Mono',Menlo,Consolas,monospace;font-size:12px}",
    ".steps{display:flex;flex-wrap:wrap;gap:6px;margin:16px 0 0;padding:0;list-style:none}.steps "
    "li{padding:4px 14px;border-radius:99px;border:1px solid "
    "var(--line);background:var(--card);color:var(--soft)}.steps "
    ".done{border-color:var(--accent);color:var(--accent)}.steps "
    ".now{background:var(--accent);border-color:var(--accent);color:var(--card);font-weight:600}",
    ".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(138px,1fr));gap:12px;margin-"
    "top:18px}.card{background:var(--card);border:1px solid "
    "var(--line);border-radius:10px;padding:12px 14px}.card "
    "b{display:block;font-size:21px;line-height:1.25;white-space:nowrap}.card "
    "span{color:var(--soft);font-size:12px}",
    "table{border-collapse:collapse;width:100%;font-size:13px}th{text-align:left;color:var(--soft);"
    "font-weight:500;font-size:12px}th,td{padding:4px 10px 4px 0;border-bottom:1px solid "
    "var(--line);vertical-align:top}td.r,th.r{text-align:right;white-space:nowrap}tr:last-child "
    "td{border-bottom:0}tfoot "
    "td{font-weight:600}td{overflow-wrap:break-word}td.n{overflow-wrap:anywhere}",
    ".two{display:flex;flex-wrap:wrap;gap:28px}.two>.wide{flex:2.2 1 "
    "470px;min-width:0}.two>.side{flex:1 1 330px;min-width:0}.draw{overflow:auto;border:1px solid "
    "var(--line);border-radius:8px;padding:6px}.tall{max-height:1500px}.chips{display:flex;flex-"
    "wrap:wrap;gap:5px}.chips span{border:1px solid var(--line);border-radius:6px;padding:2px "
    "8px;border-left-width:6px}",
    ".bar{width:16%;min-width:110px}.bar>span{display:flex;height:11px;margin-top:5px;border-"
    "radius:3px;overflow:hidden;background:var(--io)}.bar i,.key "
    "i{display:block;height:11px;background:var(--accent)}.bar i:first-child{min-width:2px}.bar "
    ".held,.key .held{background:var(--hot);opacity:.55}.key "
    "i{display:inline-block;width:11px;border-radius:3px;margin:0 4px 0 2px}.fold td,.fold "
    "th{white-space:nowrap}.fold td:nth-child(2){white-space:normal}",
    "svg text{font:11px system-ui,'DejaVu "
    "Sans',sans-serif;fill:var(--ink)}.picture{display:block;margin:0 "
    "auto;max-width:100%;height:auto}.picture "
    "path{fill:none;stroke:var(--wire);stroke-width:1.4}.picture "
    "path.back{stroke:var(--accent);stroke-dasharray:5 4}.v text{text-anchor:middle}.v "
    "rect{stroke:var(--wire);stroke-width:.8;fill:var(--other)}text.l0{font-weight:600;font-size:"
    "12px}text.l1,text.l2,text.shape,text.axis{fill:var(--soft);font-size:10px}text.shape{paint-"
    "order:stroke;stroke:var(--card);stroke-width:3px}text.fifo{fill:var(--hot);font-size:10px;"
    "font-weight:600}text.back{fill:var(--accent);font-size:10px}",
    ".io rect{fill:var(--io)}.mac rect{fill:var(--mac)}.table rect{fill:var(--table)}.attention "
    "rect{fill:var(--attention)}.norm rect{fill:var(--norm)}.sum rect{fill:var(--sum)}.move "
    "rect{fill:var(--move)}.loop rect{fill:var(--loop)}",
    "svg .i0{fill:#2f7ed8}svg .i1{fill:#e0742b}svg .i2{fill:#3a9f5b}svg .i3{fill:#8d5fd3}svg "
    ".i4{fill:#d4a017}svg .i5{fill:#d0457c}svg .i6{fill:#2aa6a6}svg .i7{fill:#7d6b5d}.chips "
    ".i0{border-left-color:#2f7ed8}.chips .i1{border-left-color:#e0742b}.chips "
    ".i2{border-left-color:#3a9f5b}.chips .i3{border-left-color:#8d5fd3}.chips "
    ".i4{border-left-color:#d4a017}.chips .i5{border-left-color:#d0457c}.chips "
    ".i6{border-left-color:#2aa6a6}.chips .i7{border-left-color:#7d6b5d}",
    ".key .i0{background:#2f7ed8}.key .i1{background:#e0742b}.key .i2{background:#3a9f5b}.key "
    ".i3{background:#8d5fd3}.key .i4{background:#d4a017}.key .i5{background:#d0457c}.key "
    ".i6{background:#2aa6a6}.key .i7{background:#7d6b5d}.narrow{max-width:560px}",
    ".chart{display:block}.chart .grid{stroke:var(--line)}.chart "
    ".stripe{fill:var(--page);opacity:.6}.chart .odd{opacity:.62}.chart .faded{opacity:.22}.chart "
    "text.inside{fill:#fff;font-size:9px;pointer-events:none}.chart "
    "text.roof{fill:var(--accent);font-weight:600}.chart text.strong{font-weight:600}",
    ".chart path{fill:none}.chart .under{fill:var(--accent);opacity:.06}.chart "
    ".roof{stroke:var(--accent);stroke-width:2}.chart text.roof{stroke:none}.chart "
    ".lead{stroke:var(--wire);stroke-width:.7;opacity:.7}.chart "
    ".dot{fill:var(--accent);stroke:var(--card)}.chart "
    ".ring{fill:var(--card);stroke:var(--accent);stroke-width:1.6}.chart "
    ".whole{fill:var(--hot);stroke:var(--card)}footer{margin-top:22px;color:var(--soft);font-size:"
    "12px}</style>"
};

/* ---- pieces --------------------------------------------------------------- */

static void mlo_html_escaped(mlo_text *t, const char *before, const char *s, const char *after) {
    mlo_puts(t, before);
    mlo_html_words(t, s, 2000);
    mlo_puts(t, after);
}

static void mlo_html_card(mlo_text *t, const char *value, const char *what) {
    mlo_html_escaped(t, "<div class=card><b>", value ? value : "", "</b>");
    mlo_html_escaped(t, "<span>", what ? what : "", "</span></div>");
}

/* Opens or closes a table row of cells: a NULL-terminated list; a leading '>' puts a cell to the
 * right. */
static void mlo_html_cells(mlo_text *t, const char *tag, const char *const *cell) {
    mlo_puts(t, "<tr>");
    for (; *cell; cell++) {
        int right = **cell == '>';
        mlo_printf(t, "<%s%s>", tag, right ? " class=r" : "");
        mlo_html_words(t, *cell + right, 400);
        mlo_printf(t, "</%s>", tag);
    }
    mlo_puts(t, "</tr>");
}
static const char *mlo_right(mlo *m, const char *s) {
    const char *r = mlo_format(m, ">%s", s);
    return r ? r : "";
}
