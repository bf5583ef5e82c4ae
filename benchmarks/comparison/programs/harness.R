# What every program in R shares; harness.py says what the files hold.
#
# A program begins with two lines that find this file from wherever Rscript was started. It defines
# estimate(table, options), which returns a list with mean and covariance (NA where the tool says nothing)
# and, where it has them, mean_interval and covariance_interval, each list(lower, upper); then it calls
# answer_all(). table has n, d, task, seed, and read(name) for its arrays. An error ends the process with
# the message on stderr; the answers written before it stay.

suppressPackageStartupMessages(library(jsonlite))

# The last line on stderr is what went wrong: no list of calls behind it, and warnings before it.
options(showErrorCalls = FALSE, warn = 1)

read_table <- function(folder, number, task) {
  path <- file.path(folder, number)
  read <- function(name) {
    file <- file.path(path, paste0(name, ".f64"))
    # NaN means hidden, for which R has a word of its own.
    cells <- readBin(file, "double", file.size(file) / 8)
    matrix(replace(cells, is.nan(cells), NA), nrow = task$n)
  }
  list(n = task$n, d = task$d, task = task, seed = number, read = read)
}

# An interval from a standard error, as tools without one of their own give it.
wald <- function(estimate, error, level) {
  reach <- qnorm((1 + level) / 2) * error
  list(estimate - reach, estimate + reach)
}

tell <- function(lines, ...) {
  writeLines(toJSON(list(...), digits = NA, auto_unbox = TRUE, na = "null"), lines)
  flush(lines)
}

peak_memory <- function() {
  if (!file.exists("/proc/self/status")) return(NA)
  line <- grep("^VmHWM", readLines("/proc/self/status"), value = TRUE)
  1024 * as.numeric(gsub("[^0-9]", "", line))
}

# Keep vectors of length one as lists, and interval ends in order, without names.
plain <- function(value) {
  if (is.list(value)) lapply(unname(value), plain) else I(unname(value))
}

answer_all <- function(estimate, packages) {
  words <- commandArgs(trailingOnly = TRUE)
  task <- fromJSON(readLines(file.path(words[1], "task.json"), warn = FALSE))
  options <- fromJSON(words[3])
  lines <- file(words[2], "w")
  on.exit(close(lines))
  versions <- lapply(setNames(nm = packages), function(name) as.character(packageVersion(name)))
  versions$R <- paste(R.version$major, R.version$minor, sep = ".")
  tell(lines, versions = versions)
  for (number in seq_len(task$tables) - 1) {
    table <- read_table(words[1], number, task)
    start <- proc.time()[["elapsed"]]
    found <- estimate(table, options)
    seconds <- proc.time()[["elapsed"]] - start
    line <- list(table = number, seconds = seconds, peak = peak_memory())
    do.call(tell, c(list(lines), line, lapply(found, plain)))
  }
}
