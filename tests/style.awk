# style.awk: what `make format` cannot hold. One line per offence; with -v counts=1 a line "STATEMENTS NAME" per function.
# usage: awk -f tests/style.awk FILE.c ...
# Lines are 120 columns at most. A function has 60 statements at most: what ends in a semicolon, and what controls others.
function ended() {
    if (name != "" && counts) print statements, name
    if (name != "" && statements > 60) print FILENAME ": " name " has " statements " statements; 60 at most"
    name = ""
    statements = 0
}
function counted(s) {
    gsub(/"([^"\\]|\\.)*"/, "", s)
    gsub(/'([^'\\]|\\.)*'/, "", s)
    if (s ~ /(^| )for \(/) statements++
    while (match(s, /for \([^;]*;[^;]*;/)) s = substr(s, 1, RSTART - 1) substr(s, RSTART + RLENGTH)
    statements += gsub(/;/, ";", s) + gsub(/(^|[ )])(if|while|switch) \(/, "", s)
}
FNR == 1 { ended(); pending = "" }
length($0) > 120 { print FILENAME ":" FNR ": " length($0) " columns; 120 at most" }
/^[a-z].*\(/ && !/^(typedef|struct|enum|union)/ { head = $0; sub(/\(.*/, "", head); n = split(head, word, /[ *]+/); pending = word[n] }
/^[a-z].*\{ .*\}$/ && pending != "" { name = pending; counted($0); ended(); pending = ""; next }
/\{$/ && name == "" && pending != "" && !/=/ { name = pending; pending = ""; next }
/^\}/ { ended(); pending = ""; next }
name != "" { counted($0) }
END { ended() }
