# style.awk: what `make format` cannot hold. One line per offence; with -v counts=1 a line "STATEMENTS NAME" per function.
# usage: awk -f tests/style.awk FILE.c ...
# Lines are 120 columns at most and have one statement; behind `case X:` that may be followed by `break;`.
# A member of a struct or union has a line of its own, where its unit can stand. Initialisers declare nothing.
# A function has 60 statements at most: what ends in a semicolon, and what controls others.
function ended() {
    if (name != "" && counts) print statements, name
    if (name != "" && statements > 60) print FILENAME ": " name " has " statements " statements; 60 at most"
    name = ""
    statements = 0
}
function code(s) {
    gsub(/"([^"\\]|\\.)*"/, "", s)
    gsub(/'([^'\\]|\\.)*'/, "", s)
    return s
}
# A line without what it says in comments, which may be open at either end, and in strings.
function bare(s) {
    s = code(s)
    gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", s)
    if (remark && s !~ /\*\//) return ""
    if (remark) sub(/.*\*\//, "", s)
    remark = s ~ /\/\*/
    sub(/\/\*.*/, "", s)
    return s
}
# Whether a line has two statements. What stands in brackets, which may be open at either end, is no statement of its own.
function crowded(s) {
    while (gsub(/\([^()]*\)/, "", s)) ;
    sub(/.*\)/, "", s)
    sub(/\(.*/, "", s)
    sub(/^ *(case [^:]*|default):/, "", s)
    sub(/ break;$/, "", s)
    return s ~ /;.*;/ || s ~ /;[ \t]*[A-Za-z_*]/
}
# Whether a declaration of members ends here that is of two, or is the second of its line.
function listed(s,    c, two) {
    if (s ~ /^\}/) level = round = 0
    while (match(s, /[{}();,]/)) {
        c = substr(s, RSTART, 1)
        before = before substr(s, 1, RSTART)
        s = substr(s, RSTART + 1)
        round += (c == "(") - (c == ")")
        if (round || c == ")") continue
        if (c == ",") { comma = 1; continue }
        if (c == ";" && inside[level] && (comma || last == FNR)) two = 1
        if (c == ";" && inside[level]) last = FNR
        if (c == "}") level -= level > 0
        if (c == "{") inside[++level] = before ~ /(^|[ \t])(struct|union)[ \t]*[A-Za-z0-9_]*[ \t]*[{]$/
        before = ""
        comma = 0
    }
    before = before s " "
    return two
}
function counted(s) {
    s = code(s)
    if (s ~ /(^| )for \(/) statements++
    while (match(s, /for \([^;]*;[^;]*;/)) s = substr(s, 1, RSTART - 1) substr(s, RSTART + RLENGTH)
    statements += gsub(/;/, ";", s) + gsub(/(^|[ )])(if|while|switch) \(/, "", s)
}
FNR == 1 { ended(); pending = before = ""; remark = level = round = comma = last = 0 }
{ text = bare($0) }
crowded(text) { print FILENAME ":" FNR ": two statements" }
listed(text) { print FILENAME ":" FNR ": two members" }
length($0) > 120 { print FILENAME ":" FNR ": " length($0) " columns; 120 at most" }
/^[a-z].*\(/ && !/^(typedef|struct|enum|union)/ { head = $0; sub(/\(.*/, "", head); n = split(head, word, /[ *]+/); pending = word[n] }
/^[a-z].*\{ .*\}$/ && pending != "" { name = pending; counted($0); ended(); pending = ""; next }
/\{$/ && name == "" && pending != "" && !/=/ { name = pending; pending = ""; next }
/^\}/ { ended(); pending = ""; next }
name != "" { counted($0) }
END { ended() }
