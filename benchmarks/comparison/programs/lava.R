# lava: maximum likelihood of a saturated model whose outcomes are censored, each one a Surv object.
#
# Probabilities come from mets, which lava needs for censored outcomes.

here <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])
source(file.path(dirname(gsub("~+~", " ", here, fixed = TRUE)), "harness.R"))
suppressPackageStartupMessages(library(lava))
suppressPackageStartupMessages(library(mets))

estimate_table <- function(table, options) {
  d <- table$d
  columns <- paste0("y", 1:d)
  model <- covariance(lvm(), columns, pairwise = TRUE)
  # Names of parameters, in the places of a mean and a covariance: y1, y1~~y2.
  pairs <- outer(1:d, 1:d, function(i, j) paste0(columns[pmin(i, j)], "~~", columns[pmax(i, j)]))
  control <- list(start = start_at(table, columns, pairs)[coef(model)])
  fit <- estimate(model, outcomes(table, columns), control = control)
  ends <- confint(fit, level = table$task$level)
  list(
    mean = coef(fit)[columns],
    covariance = matrix(coef(fit)[pairs], d),
    mean_interval = list(ends[columns, 1], ends[columns, 2]),
    covariance_interval = list(matrix(ends[pairs, 1], d), matrix(ends[pairs, 2], d))
  )
}

# Events of kind 1 are seen, of kind 3 between two ends, which may be infinite. Type "interval2" would be
# shorter, but it makes kinds 0 and 2, which have one end, and lava 1.7 takes the empty other one for a value.
outcomes <- function(table, columns) {
  lower <- table$read("lower")
  upper <- table$read("upper")
  censored <- lapply(1:table$d, function(j) {
    Surv(lower[, j], upper[, j], ifelse(lower[, j] == upper[, j], 1, 3), type = "interval")
  })
  frame <- data.frame(row.names = seq_len(table$n))
  frame[columns] <- censored
  frame
}

# Start from what is seen, with correlations halved: pairs of columns need not agree on a matrix that is
# positive definite. lava's own start is the moments of the first ends, which may be infinite.
start_at <- function(table, columns, pairs) {
  values <- table$read("values")
  covariances <- cov(values, use = "pairwise.complete.obs") * (1 + diag(table$d)) / 2
  c(setNames(colMeans(values, na.rm = TRUE), columns), setNames(c(covariances), pairs))
}

answer_all(estimate_table, c("lava", "mets", "survival"))
