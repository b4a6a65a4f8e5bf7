/* count FILE: reads every packet of a capture with libpcap and counts it. The
 * floor that benchmarks compare with: nothing that uses libpcap reads faster. */
#include <pcap/pcap.h>
#include <stdio.h>

int main(int argc, char **argv) {
  char problem[PCAP_ERRBUF_SIZE];
  struct pcap_pkthdr *header;
  const u_char *data;
  unsigned long packets = 0, bytes = 0;
  int rc;

  if (argc != 2) {
    fprintf(stderr, "usage: count FILE\n");
    return 2;
  }
  pcap_t *capture = pcap_open_offline(argv[1], problem);
  if (!capture) {
    fprintf(stderr, "count: %s\n", problem);
    return 2;
  }
  while ((rc = pcap_next_ex(capture, &header, &data)) == 1) {
    packets++;
    bytes += header->caplen;
  }
  if (rc != PCAP_ERROR_BREAK) {
    fprintf(stderr, "count: %s\n", pcap_geterr(capture));
    return 2;
  }
  printf("%lu packets %lu bytes\n", packets, bytes);
  return 0;
}
