# Shared look of all figures: colour-blind safe (Okabe-Ito), readable at column width.
set datafile separator ","
set encoding utf8
set terminal svg size 760,480 dynamic enhanced font "DejaVu Sans,13" background rgb "white"
set style line 1 lc rgb "#0072B2" lw 2.5 pt 7 ps 0.6
set style line 2 lc rgb "#D55E00" lw 2.5 pt 5 ps 0.6
set style line 3 lc rgb "#009E73" lw 2.5 pt 9 ps 0.7
set style line 4 lc rgb "#CC79A7" lw 2.5 pt 11 ps 0.7
set style line 5 lc rgb "#56B4E9" lw 2 dt 2 pt 6 ps 0.6
set style line 6 lc rgb "#E69F00" lw 2 dt 2 pt 4 ps 0.6
set style line 7 lc rgb "#000000" lw 1.5 dt 3 pt 8 ps 0.6
set style line 8 lc rgb "#999999" lw 1.5 dt 4 pt 10 ps 0.6
set grid lc rgb "#dddddd" lw 1
set border 3 lc rgb "#444444"
set tics nomirror
set key outside right top vertical samplen 2 spacing 1.2
