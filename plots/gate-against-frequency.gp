# Usage: gnuplot -e "run='results/reproduce'; variant='priced'" plots/gate-against-frequency.gp
# Reads <run>/<variant>/gate-by-frequency.csv: layer, order, count_low, look-ups, mean, p25, p75 of the gate energy, one
# line per power of two of the row's access count; blocks of one (layer, order) are separated by two blank lines.
load "plots/style.gp"
file = run . "/" . variant . "/gate-by-frequency.csv"
set output run . "/figures/gate-against-frequency-" . variant . ".svg"
set title "Gate energy against row access count, held-out text (model " . variant . ")"
set xlabel "accesses of the row in the counting corpus (at 0.5: never)"
set ylabel "mean gate energy (lines), quartiles (bands)"
set logscale x 2
set format x "%.0f"
stats file using 5 nooutput
n = STATS_blocks
set key outside right top
plot for [i = 0:n-1] file index i using 3:6:7 with filledcurves fs transparent solid 0.10 lc rgb (word("#0072B2 #D55E00 #009E73 #CC79A7 #56B4E9 #E69F00", i % 6 + 1)) notitle, \
     for [i = 0:n-1] file index i using 3:5 with linespoints ls (i % 6 + 1) title columnheader(1)
