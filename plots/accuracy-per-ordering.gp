# Usage: gnuplot -e "run='results/reproduce'; variant='priced'" plots/accuracy-per-ordering.gp
# Reads <run>/<variant>/accuracy.csv: reader, accuracy, low, high (fractions), further columns unused.
load "plots/style.gp"
file = run . "/" . variant . "/accuracy.csv"
set output run . "/figures/accuracy-per-ordering-" . variant . ".svg"
set title "Cold facts answered, by what is read (model " . variant . "; bars: 95 % intervals)"
set ylabel "accuracy [%]"
set style fill solid 0.85 noborder
set boxwidth 0.7
set xtics rotate by 40 right noenhanced
set yrange [0:100]
set grid ytics
unset key
plot file using 0:(100 * $2):xtic(1) skip 1 with boxes lc rgb "#0072B2", \
     file using 0:(100 * $3):(0):(100 * ($4 - $3)) skip 1 with vectors nohead lc rgb "#222222" lw 2
