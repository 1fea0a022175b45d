// Counts what is in a trace, without trace_processor: device work by stage, arrows, and the
// facts that the trace states. Prints JSON.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

struct Bytes {
    const uint8_t *at, *end;

    uint64_t varint() {
        uint64_t value = 0;
        for (int shift = 0; at < end && shift < 64; shift += 7) {
            uint8_t byte = *at++;
            value |= uint64_t(byte & 127) << shift;
            if (byte < 128) break;
        }
        return value;
    }

    // The next field: its number, and its value or its bytes.
    bool next(uint32_t &field, uint64_t &value, Bytes &bytes) {
        if (at >= end) return false;
        uint64_t tag = varint();
        field = tag >> 3, value = 0, bytes = {nullptr, nullptr};
        switch (tag & 7) {
        case 0: value = varint(); return true;
        case 1: if (end - at < 8) return false; memcpy(&value, at, 8); at += 8; return true;
        case 5: if (end - at < 4) return false; memcpy(&value, at, 4); at += 4; return true;
        case 2: {
            uint64_t size = varint();
            if (size > uint64_t(end - at)) return false;
            bytes = {at, at + size};
            at += size;
            return true;
        }
        default: return false;
        }
    }

    std::string text() const { return std::string((const char *)at, end - at); }
};

int main(int argc, char **argv) {
    std::ifstream file(argv[1], std::ios::binary);
    std::vector<char> data((std::istreambuf_iterator<char>(file)), {});
    Bytes trace{(const uint8_t *)data.data(), (const uint8_t *)data.data() + data.size()};
    std::map<uint64_t, uint64_t> stages, busy;
    std::unordered_map<uint64_t, uint32_t> work, asked;
    std::map<std::string, std::string> facts;
    uint64_t packets = 0, events = 0, longest = 0;
    std::unordered_map<uint64_t, uint64_t> durations;
    uint32_t field;
    uint64_t value;
    Bytes packet, part, inner, deep;
    while (trace.next(field, value, packet)) {
        packets++;
        while (packet.next(field, value, part)) {
            if (field == 53) {
                uint64_t id = 0, stage = 0, duration = 0;
                while (part.next(field, value, inner)) {
                    if (field == 1) id = value;
                    if (field == 2) duration = value;
                    if (field == 14) stage = value;
                }
                stages[stage]++, busy[stage] += duration, work[id]++;
                if (duration > longest) longest = duration;
                if (duration > 500000) durations[id] = duration;
            } else if (field == 11) {
                events++;
                while (part.next(field, value, inner))
                    if (field == 3000)
                        while (inner.next(field, value, deep))
                            if (field == 1) asked[value]++;
            } else if (field == 126) {
                while (part.next(field, value, inner)) {
                    std::string key, text;
                    while (inner.next(field, value, deep)) {
                        if (field == 1) key = deep.text();
                        if (field == 2) text = std::to_string(int64_t(value));
                        if (field == 3) text = deep.text();
                    }
                    facts[key] = text;
                }
            }
        }
    }
    uint64_t arrows = 0, orphans = 0, fruitless = 0, twice = 0, spin = 0;
    for (auto &[id, count] : work) (asked.count(id) ? arrows : orphans) += count;
    for (auto &[id, count] : asked) fruitless += !work.count(id), twice += count > 1;
    for (auto &[id, duration] : durations) spin += duration;
    printf("{\"bytes\": %zu, \"packets\": %llu, \"track_events\": %llu, \"kernels\": %llu, "
           "\"copies\": %llu, \"sets\": %llu, \"graphs\": %llu, \"with_arrow\": %llu, "
           "\"without_arrow\": %llu, \"calls_without_work\": %llu, \"ids_asked_twice\": %llu, "
           "\"long_ms\": %.4f, \"facts\": {",
           data.size(), (unsigned long long)packets, (unsigned long long)events,
           (unsigned long long)stages[1], (unsigned long long)stages[2],
           (unsigned long long)stages[3], (unsigned long long)stages[5],
           (unsigned long long)arrows, (unsigned long long)orphans,
           (unsigned long long)fruitless, (unsigned long long)twice, spin / 1e6);
    const char *comma = "";
    for (auto &[key, text] : facts) {
        printf("%s\"%s\": \"", comma, key.c_str());
        for (char c : text) c == '"' || c == '\\' ? printf("\\%c", c) : printf("%c", c);
        printf("\"");
        comma = ", ";
    }
    printf("}}\n");
}
