/* A JSON-lines expert: answers each point x with 1 - (x - 0.3)^2, summed over coordinates.
   It reads the id and the points with strtod only, so it needs no JSON library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char line[1 << 20];

/* Copy the text of the string after "key": into text; return whether there is one. */
static int find_text(const char *key, char *text, size_t size)
{
    const char *at = strstr(line, key), *end;
    if (!at || !(at = strchr(at + strlen(key), '"')) || !(end = strchr(++at, '"')))
        return 0;
    if ((size_t)(end - at) >= size)
        return 0;
    memcpy(text, at, end - at);
    text[end - at] = '\0';
    return 1;
}

int main(void)
{
    char id[1024];
    while (fgets(line, sizeof line, stdin)) {
        char *at = strstr(line, "\"points\":");
        int count = 0, depth = 0;
        double value = 1.0;
        if (!find_text("\"id\":", id, sizeof id) || !at) {
            fprintf(stderr, "lab: cannot read %.60s\n", line);
            continue;
        }
        printf("{\"type\":\"answer\",\"id\":\"%s\",\"values\":[", id);
        for (at += strlen("\"points\":"); *at; at++) {
            if (*at == '[') {
                depth++;
                value = 1.0;
            } else if (*at == ']') {
                if (depth-- == 2)
                    printf("%s%.17g", count++ ? "," : "", value);
                if (depth == 0)
                    break;
            } else if (depth == 2 && strchr("-0123456789", *at)) {
                double x = strtod(at, &at);
                value -= (x - 0.3) * (x - 0.3);
                at--; /* The loop goes on behind the number. */
            }
        }
        printf("]}\n");
        fflush(stdout);
    }
    return 0;
}
