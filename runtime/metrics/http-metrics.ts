import type { MetricFactory } from "./metric-factory.ts";

/** Returns the metrics of the HTTP servers and of the buyers' pages. */
export const createHttpMetrics = ({ counter, gauge, histogram }: MetricFactory) => ({
  httpRequests: counter("pay_http_requests_total", "HTTP responses, by route and status", [
    "route",
    "method",
    "status",
  ]),
  httpSeconds: histogram(
    "pay_http_request_duration_seconds",
    "Duration of HTTP requests, without the time that a long poll is held",
    ["route", "method"],
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
  ),
  rateLimited: counter("pay_rate_limited_total", "Requests refused by a rate limit, by what the limit counts", ["by"]),
  refusedLogins: counter(
    "pay_board_refused_logins_total",
    "Logins to bull-board refused for a wrong password or too many attempts",
  ),
  longPolls: gauge("pay_long_polls_waiting", "Long polls that this process holds"),
  longPollEnds: counter("pay_long_polls_total", "Finished long polls, by reason", ["reason"]),
  pageDifferences: gauge(
    "pay_page_differences",
    "Differences between a buyers' page as served and its release, at this process's last check",
    ["page"],
  ),
  pageChecked: gauge(
    "pay_page_checked_timestamp_seconds",
    "Time when this process last checked a buyers' page as it is served; its start time before the first check",
    ["page"],
  ),
});
