# Usage: gnuplot -e "run='results/reproduce'; variant='priced'" plots/captured-against-budget.gp
# Reads <run>/<variant>/curve.csv (budget, one column per ordering; fractions).
load "plots/style.gp"
file = run . "/" . variant . "/curve.csv"
set output run . "/figures/captured-against-budget-" . variant . ".svg"
set title "Captured weighted-error reduction, question look-ups (model " . variant . ")"
set xlabel "look-ups that read stage 2 [%]"
set ylabel "captured [%]"
set xrange [0:100]
set yrange [0:102]
set arrow 1 from 41.2, graph 0 to 41.2, graph 1 nohead lc rgb "#bbbbbb" lw 1.5
set label 1 "41.2 %" at 42, 4 tc rgb "#666666"
set key outside right center
plot for [i = 2:9] file using (100 * $1):(100 * column(i)) with linespoints ls (i - 1) title columnhead(i)
