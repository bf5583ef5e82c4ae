# survival::survreg: Tobit regression on a constant, each column by itself; nothing about covariances.

here <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])
source(file.path(dirname(gsub("~+~", " ", here, fixed = TRUE)), "harness.R"))
suppressPackageStartupMessages(library(survival))

estimate <- function(table, options) {
  d <- table$d
  lower <- table$read("lower")
  upper <- table$read("upper")
  fits <- lapply(1:d, function(j) {
    survreg(Surv(lower[, j], upper[, j], type = "interval2") ~ 1, dist = "gaussian")
  })
  error <- sqrt(sapply(fits, function(fit) diag(vcov(fit))))
  mean <- sapply(fits, coef)
  log_scale <- log(sapply(fits, function(fit) fit$scale))
  on_diagonal <- function(values) replace(matrix(NA_real_, d, d), cbind(1:d, 1:d), values)
  list(
    mean = mean,
    covariance = on_diagonal(exp(2 * log_scale)),
    mean_interval = wald(mean, error[1, ], table$task$level),
    # The second parameter is log(scale); a variance is exp of twice that.
    covariance_interval = lapply(
      wald(log_scale, error[2, ], table$task$level),
      function(end) on_diagonal(exp(2 * end))
    )
  )
}

answer_all(estimate, "survival")
