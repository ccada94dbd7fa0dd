# Sourced after lib.sh: tiny_model FOLDER makes model.safetensors, codes with receipts and counts.safetensors of a
# miniature that has hardly been trained, in a second or two.
tiny_model() {
    local folder=$1
    mkdir -p "$folder/codes" || return 1
    sed -e 's/"n_entities": [0-9]*/"n_entities": 20/' -e 's/"n_tokens": [0-9]*/"n_tokens": 6144/' \
        -e 's/"warmup_steps": [0-9]*/"warmup_steps": 2/' experiments/configs/demo.json >"$folder/tiny.json"
    {
        "$GATERQ" train --config "$folder/tiny.json" --out "$folder/model.safetensors" --quiet &&
            for layer in 1 2; do
                "$GATERQ" encode --memory "$folder" --layer $layer --out "$folder/codes/layer-$layer.safetensors" --quiet &&
                    "$GATERQ" verify "$folder/codes/layer-$layer.safetensors" --memory "$folder" --layer $layer --quiet || return 1
            done
        "$GATERQ" count --model "$folder/model.safetensors" --codes "$folder/codes" --tokens 4000 \
            --out "$folder/counts.safetensors" --quiet
    } >"$folder/log" 2>&1 || { cat "$folder/log" >&2; return 1; }
    rm -f "$folder/log"
}
