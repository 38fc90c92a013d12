# style.awk: what `make format` cannot hold. One line per offence; with -v counts=1 a line "STATEMENTS NAME" per function.
# usage: awk -f tests/style.awk FILE.c ...
# Lines are 120 columns at most and have one statement; behind `case X:` that may be followed by `break;`.
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
# Whether a line has two statements. What stands in brackets, which may be open at either end, is no statement of its own.
function crowded(s) {
    s = code(s)
    gsub(/\/\*[^*]*\*\//, "", s)
    if (remark && s !~ /\*\//) return 0
    if (remark) sub(/.*\*\//, "", s)
    remark = s ~ /\/\*/
    sub(/\/\*.*/, "", s)
    while (gsub(/\([^()]*\)/, "", s)) ;
    sub(/.*\)/, "", s)
    sub(/\(.*/, "", s)
    sub(/^ *(case [^:]*|default):/, "", s)
    sub(/ break;$/, "", s)
    return s ~ /;.*;/ || s ~ /;[ \t]*[A-Za-z_*]/
}
function counted(s) {
    s = code(s)
    if (s ~ /(^| )for \(/) statements++
    while (match(s, /for \([^;]*;[^;]*;/)) s = substr(s, 1, RSTART - 1) substr(s, RSTART + RLENGTH)
    statements += gsub(/;/, ";", s) + gsub(/(^|[ )])(if|while|switch) \(/, "", s)
}
FNR == 1 { ended(); pending = ""; remark = 0 }
crowded($0) && !/^static const struct \{/ { print FILENAME ":" FNR ": two statements" }
length($0) > 120 { print FILENAME ":" FNR ": " length($0) " columns; 120 at most" }
/^[a-z].*\(/ && !/^(typedef|struct|enum|union)/ { head = $0; sub(/\(.*/, "", head); n = split(head, word, /[ *]+/); pending = word[n] }
/^[a-z].*\{ .*\}$/ && pending != "" { name = pending; counted($0); ended(); pending = ""; next }
/\{$/ && name == "" && pending != "" && !/=/ { name = pending; pending = ""; next }
/^\}/ { ended(); pending = ""; next }
name != "" { counted($0) }
END { ended() }
